"""Field numbers of Caffe's messages (caffe.proto), as far as they are read."""


class NetParameter:
    LAYERS = 2
    LAYER = 100


class Layer:
    NAME = 1
    BLOBS = 7


class V1Layer:
    NAME = 4
    BLOBS = 6


class Blob:
    NUM = 1
    CHANNELS = 2
    HEIGHT = 3
    WIDTH = 4
    DATA = 5
    SHAPE = 7
    DOUBLE_DATA = 8


class BlobShape:
    DIM = 1
