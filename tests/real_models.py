"""The real models that LITE_TEST_MODELS has."""

from __future__ import annotations

#: With the shape of the first input where the file leaves it open.
REAL: dict[str, tuple[int, ...] | None] = {
    "onnx/mnist_8.onnx": None,
    "tflite/micro_speech_int8.tflite": None,
    "tflite/vww_96_float.tflite": None,
    "tflite/vww_96_int8.tflite": None,
    "tflite/person_detect_int8.tflite": None,
    "tflite/mobilenet_v1_0.25_224_float.tflite": None,
    "tflite/mobilenet_v1_0.25_224_quant.tflite": None,
    "tflite/ssd_mobilenet_v1_coco_quant.tflite": None,
    "onnx/DERIVED_mobilenet_v1_0.25_224_tf2onnx.onnx": None,
    "onnx/DERIVED_mobilenet_v1_0.25_224_qdq_int8.onnx": None,
    "tf/mobilenet_v1_0.25_224_frozen_graph.pb": None,
    "caffe/mtcnn/det1.caffemodel": None,
    "caffe/mtcnn/det2.caffemodel": None,
    "caffe/mtcnn/det3.caffemodel": None,
    "caffe/yufacedetectnet-open-v1.caffemodel": None,
    "lprnet_plate_ocr/DERIVED_lprnet.onnx": None,
    "ultraface_rfb320/version-RFB-320.onnx": None,
    "ultraface_rfb320/RFB-320.caffemodel": None,
    "ultraface_rfb320/version-RFB-320_without_postprocessing.tflite": None,
    "ppocr_v2_cls/model.onnx": (1, 3, 48, 192),
    "ppocr_v2_cls/inference.pdmodel": (1, 3, 32, 100),
    "ppocr_v3_det_ch/model.onnx": (1, 3, 640, 640),
    "ppocr_v3_det_ch/inference.pdmodel": (1, 3, 320, 320),
    "paddle/shufflenet_v2_imagenet_fluid": (1, 3, 224, 224),
    "nb/ch_ppocr_mobile_v2.0_cls_slim_opt.nb": (1, 3, 32, 100),
    "nb/ch_ppocr_mobile_v2.0_rec_slim_opt.nb": (1, 3, 32, 100),
    "nb/ch_ppocr_mobile_v2.0_det_slim_opt.nb": (1, 3, 320, 320),
    "nb/mask_detector_model.nb": (1, 3, 128, 128),
    "deeplab_dm05_person/deeplab_aiseg513_dm05_float.tflite": None,
    "deeplab_dm05_person/frozen_inference_graph.pb": (1, 257, 257, 3),
}
#: decode a sound file themselves: their one input is its bytes
SOUND = {"tf/DS_CNN_S.pb": "audio/yes_1000ms.wav"}
