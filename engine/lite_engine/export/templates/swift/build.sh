#!/bin/sh
# Builds the runtime for this package from its sources. A Mac needs Xcode and CMake (brew install cmake),
# Linux a C++ compiler and CMake.
set -e
cd "$(dirname "$0")"

# build FOLDER OPTION...: build/FOLDER/liblite_runtime.a
build() {
  folder=build/$1
  shift
  cmake -S Runtime -B "$folder" -DCMAKE_BUILD_TYPE=Release "$@"
  cmake --build "$folder" --target lite_static --parallel "$(getconf _NPROCESSORS_ONLN)"
}

if [ "$(uname -s)" != Darwin ]; then
  build linux
  exit
fi
build macos -DCMAKE_OSX_DEPLOYMENT_TARGET=11.0
for system in iphoneos iphonesimulator; do
  build $system -DCMAKE_SYSTEM_NAME=iOS -DCMAKE_SYSTEM_PROCESSOR=arm64 -DCMAKE_OSX_SYSROOT=$system \
    -DCMAKE_OSX_ARCHITECTURES=arm64 -DCMAKE_OSX_DEPLOYMENT_TARGET=13.0
done
mkdir -p build/headers
cp Runtime/native/include/lite_runtime.h build/headers/
cp Runtime/apple.modulemap build/headers/module.modulemap
rm -rf CLite.xcframework
set --
for folder in macos iphoneos iphonesimulator; do
  set -- "$@" -library build/$folder/liblite_runtime.a -headers build/headers
done
xcodebuild -create-xcframework "$@" -output CLite.xcframework
