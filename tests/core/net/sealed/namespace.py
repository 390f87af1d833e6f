"""An internet on loopback: in a fresh network namespace every address leads to ourselves."""

import fcntl
import socket
import struct

SIOCSIFFLAGS, IFF_UP, IFF_LOOPBACK = 0x8914, 0x1, 0x8
NLM_F_REQUEST, NLM_F_ACK, NLM_F_CREATE, RTM_NEWROUTE = 0x1, 0x4, 0x400, 24
RT_TABLE_LOCAL, RTPROT_BOOT, RT_SCOPE_HOST, RTN_LOCAL, RTA_OIF = 255, 3, 254, 2, 4


def seal() -> None:
    """Bring loopback up and route all of IPv4 and IPv6 to it.

    Refuses to touch a network that has any other interface.
    """
    interfaces = socket.if_nameindex()
    if [name for _, name in interfaces] != ["lo"]:
        problem = f"not a sealed namespace: it has {interfaces}"
        raise RuntimeError(problem)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP | IFF_LOOPBACK))
    for family in (socket.AF_INET, socket.AF_INET6):
        _route_everything_here(family, interfaces[0][0])


def _route_everything_here(family: int, interface: int) -> None:
    """Do what `ip route add local default dev lo` does, for machines without iproute2."""
    route = struct.pack(
        "=8BI", family, 0, 0, 0, RT_TABLE_LOCAL, RTPROT_BOOT, RT_SCOPE_HOST, RTN_LOCAL, 0
    )
    route += struct.pack("=HHI", 8, RTA_OIF, interface)
    head = struct.pack(
        "=IHHII", 16 + len(route), RTM_NEWROUTE, NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE, 1, 0
    )
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as netlink:
        netlink.send(head + route)
        (error,) = struct.unpack("=i", netlink.recv(4096)[16:20])
    if error:
        raise OSError(-error, "no route to everywhere")
