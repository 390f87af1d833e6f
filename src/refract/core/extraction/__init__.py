"""Untrusted bytes, worked on outside of the server: `pool.ExtractionPool.run` sends a task to a process of its own.

tasks: what a task is and how it ends · turns: whose turn it is · frames: the bytes between the processes ·
pool: the server's side · child: the program in the extraction process, which loads no more of Refract than its tasks need
"""
