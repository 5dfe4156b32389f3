/** Names of keys as the page shows them. */
import { bytesOfKeyName, type KeyName } from '../../../../../src/contract/databases/keys/key-name.js'
import { escaped } from '../../../lib/resp.js'

/** A name with its unprintable bytes escaped. */
export const shownName = (name: KeyName): string => (PLAIN.test(name) ? name : escaped(bytesOfKeyName(name)))

const PLAIN = /^[^\u0000-\u001f\u007f"\\\ud800-\udfff]*$/
