// swift-tools-version:5.7
import PackageDescription

// `./build.sh` makes the runtime: an XCFramework on a Mac, a static library on Linux.
#if os(Linux)
let runtime = Target.systemLibrary(name: "CLite")
let settings: [LinkerSetting] = [
  .unsafeFlags(["-L\(Context.packageDirectory)/build/linux"]),
  .linkedLibrary("stdc++"),
]
#else
let runtime = Target.binaryTarget(name: "CLite", path: "CLite.xcframework")
let settings: [LinkerSetting] = [.linkedLibrary("c++")]
#endif

let package = Package(
  name: "@NAME@",
  platforms: [.iOS(.v13), .macOS(.v11)],
  products: [.library(name: "Lite", targets: ["Lite"])],
  targets: [
    runtime,
    .target(
      name: "Lite", dependencies: ["CLite"], resources: [.copy("Resources/model.lite")],
      linkerSettings: settings),
    .executableTarget(name: "sample", dependencies: ["Lite"]),
  ]
)
