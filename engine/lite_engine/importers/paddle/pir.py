"""Placeholder"""


def looks_like_pir(start):
    return False


def read_pir(data):
    raise NotImplementedError
