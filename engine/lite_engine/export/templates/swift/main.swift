// The answer about an image or a sound, as JSON; with a second path also the image with the answer on it.
import Foundation
import Lite

let arguments = CommandLine.arguments
guard arguments.count == 2 || arguments.count == 3 else {
  FileHandle.standardError.write(Data("usage: sample IMAGE [DRAWN.png]\n".utf8))
  exit(2)
}
do {
  let app = try LiteApp.bundled()
  print(try app.run(Data(contentsOf: URL(fileURLWithPath: arguments[1]))))
  if arguments.count == 3 {
    try app.drawn()?.write(to: URL(fileURLWithPath: arguments[2]))
  }
} catch {
  FileHandle.standardError.write(Data("error: \(error.localizedDescription)\n".utf8))
  exit(1)
}
