import { isObject } from '../../base/index.js'

/** What Node makes for a write. Only where the system does not take all bytes at once, it is used and called back. */
export interface WriteRequest {
  /** `status` is 0, or an error of the system as a negative number. */
  oncomplete: (status: number) => void
  /** Keeps the bytes alive for the system. */
  buffer: Buffer
}

/** What Node keeps of streams; it does not document that. */
export interface StreamInternals {
  readonly WriteWrap: new () => WriteRequest
  /** What came of the last call, whichever stream it was of. */
  readonly streamBaseState: Int32Array
  /** Where the state says whether the last write left bytes for later. */
  readonly kLastWriteWasAsync: number
  /** Where the state says how much the last read brought; an error of the system, or the end, is negative. */
  readonly kReadBytesOrError: number
}

/** Undefined where Node has changed, or does not let itself be used so. */
export const streamInternals = findInternals(process)

/** Looks for them in what a program knows of its process. A process that was started with `--permission` refuses. */
export function findInternals(host: object): StreamInternals | undefined {
  if (!('binding' in host) || typeof host.binding !== 'function') return undefined
  try {
    const found: unknown = host.binding('stream_wrap')
    return isInternals(found) ? found : undefined
  } catch {
    return undefined
  }
}

function isInternals(value: unknown): value is StreamInternals {
  return (
    isObject(value) &&
    typeof value.WriteWrap === 'function' &&
    value.streamBaseState instanceof Int32Array &&
    typeof value.kLastWriteWasAsync === 'number' &&
    typeof value.kReadBytesOrError === 'number'
  )
}
