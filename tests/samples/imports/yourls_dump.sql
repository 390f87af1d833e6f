-- MySQL dump 10.13  Distrib 8.0.36, for Linux (x86_64)
/*!40101 SET NAMES utf8mb4 */;
DROP TABLE IF EXISTS `short_log`;
CREATE TABLE `short_log` (
  `click_id` int NOT NULL AUTO_INCREMENT,
  PRIMARY KEY (`click_id`)
) ENGINE=InnoDB;
INSERT INTO `short_log` VALUES (1,'2024-05-02 11:00:00','ozh','https://news.example/?q=\'),(\n','Mozilla/5.0 (X11)','203.0.113.9','DE'),(2,'2024-05-02 11:00:00','ozh','INSERT INTO `short_url` VALUES (\'evil\'','x','203.0.113.9','DE');
CREATE TABLE `short_url` (
  `keyword` varchar(100) NOT NULL,
  `url` text NOT NULL
) ENGINE=InnoDB;
INSERT INTO `short_url` VALUES ('ozh','https://ozh.org/','Ozh\'s (blog), it''s; \"here\"','2015-05-01 10:00:00','203.0.113.9',3),('aB','https://example.com/a',NULL,'2016-05-01 10:00:00','203.0.113.9',0);
INSERT INTO `short_url` (`keyword`, `url`, `title`, `timestamp`, `ip`, `clicks`) VALUES
('ab', 'https://example.com/b', 'Zürich', '2017-05-01 10:00:00', '203.0.113.9', 7),
('v1.0', 'https://example.com/c', '', '2018-05-01 10:00:00', '203.0.113.9', 0);
