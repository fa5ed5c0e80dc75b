# The fuzz targets look for bad bytes in readers: they have the kernels without vector code, which
# compile in a moment and with any clang. lite_fuzz has them all.
set(LITE_ISAS "")
set(LITE_EXTRA_ISAS "")
set(listed "${CMAKE_CURRENT_SOURCE_DIR}/src/kernel_list.inc")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${listed}")
file(STRINGS "${listed}" rows REGEX "^LITE_BASE_KERNELS")
list(JOIN rows "\n" rows)
set(LITE_KERNEL_LIST "${CMAKE_BINARY_DIR}/base_kernels.inc")
file(WRITE "${LITE_KERNEL_LIST}" "${rows}\n")
