"""Processing of untrusted bytes outside the server: `pool.ExtractionPool.run` uses a process.

tasks: what a task is, how it ends, and the bytes between the processes · fair_semaphore: whose turn
it is · pool: the server's side · worker: the program in the extraction process, which loads no more
of Refract than its tasks need
"""
