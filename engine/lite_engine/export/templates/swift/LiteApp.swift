import CLite
import Foundation

/// The application in a `.lite` file: an image or a sound in, an answer out. For one thread at a time.
///
///     let app = try LiteApp.bundled()
///     let answer = try app.run(photo)  // a JPEG, PNG or BMP file
///     let picture = app.drawn()        // the photo with the answer drawn on it, a PNG file
public final class LiteApp {
  private let file: LiteFile
  private let app: OpaquePointer

  /// The file that this package carries. Throws `LiteError`.
  public static func bundled(options: LiteOptions = LiteOptions()) throws -> LiteApp {
    try LiteApp(path: LiteFile.bundled, options: options)
  }

  /// Throws `LiteError` for a file that cannot be read, or that does not say how an image becomes its input.
  public init(path: String, options: LiteOptions = LiteOptions()) throws {
    let file = try LiteFile(path: path)
    app = try options.withC { options in
      try made { lite_app_open(file.pointer, options, $0, $1) }
    }
    self.file = file
  }

  deinit { lite_app_free(app) }

  /// The answer about a JPEG, PNG, BMP or WAV file as JSON, with each stage's time. Throws `LiteError`.
  public func run(_ input: Data) throws -> String {
    try input.withUnsafeBytes { bytes in
      try check { lite_app_run(app, bytes.baseAddress, bytes.count, $0, $1) }
    }
    guard let answer = lite_app_answer(app, 1) else { throw LiteError(description: "out of memory") }
    return String(cString: answer)
  }

  /// The last image with the answer drawn on it, as a PNG file; nil for a sound.
  public func drawn() -> Data? {
    var size = 0
    guard let png = lite_app_drawn(app, &size) else { return nil }
    return Data(bytes: png, count: size)
  }
}
