"""Everything an installation holds, carried elsewhere and compared: moving to another database, backup and restore."""
