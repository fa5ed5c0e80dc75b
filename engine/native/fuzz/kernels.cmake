# The fuzz targets look for bad bytes in readers: they have the kernels without vector code, which
# compile in a moment and with any clang. lite_fuzz has them all.
set(LITE_ISAS "")
set(LITE_EXTRA_ISAS "")
file(STRINGS "${kernel_list}" rows REGEX "^LITE_BASE_KERNELS")
list(JOIN rows "\n" rows)
set(kernel_list "${CMAKE_CURRENT_BINARY_DIR}/base_kernels.inc")
file(CONFIGURE OUTPUT "${kernel_list}" CONTENT "${rows}\n" @ONLY)
