/** Base64 in the browser. */
import type { Base64 } from '../../../src/contract/databases/keys/key-file.js'
import { binaryText } from '../../../src/contract/databases/keys/key-name.js'
import { bytesOfBase64 } from './payload.js'

/** Base64 in the form that the data plane and the files of exported keys use. */
export const base64: Base64 = {
  encode: (bytes) => btoa(binaryText(bytes)),
  decode: bytesOfBase64,
}
