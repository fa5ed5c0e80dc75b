import Foundation

/// What the runtime says: one line, with the cause and the fix.
public struct LiteError: LocalizedError, CustomStringConvertible {
  public let description: String
  public var errorDescription: String? { description }
}

/// The result of a C function that writes one line of error where it returns nil.
func made<Result>(_ call: (UnsafeMutablePointer<CChar>, Int) -> Result?) throws -> Result {
  var text = [CChar](repeating: 0, count: 512)
  if let result = text.withUnsafeMutableBufferPointer({ call($0.baseAddress!, $0.count) }) {
    return result
  }
  throw LiteError(description: String(cString: text))
}

/// The same of a C function that returns 0 where it succeeds.
func check(_ call: (UnsafeMutablePointer<CChar>, Int) -> Int32) throws {
  _ = try made { call($0, $1) == 0 ? () : nil }
}
