import { createRequire } from 'node:module'
import { atCleanup } from '../support/index.js'

type Testing = typeof import('../../src/testkit/testing.cjs')

/** `homeport/testing` as an application gets it: the built file, found by the package's `exports`. */
export const testing = (): Testing => createRequire(import.meta.url)('homeport/testing') as Testing

/** A test server that is stopped after the last test of the file. */
export async function startTestServer(...options: Parameters<Testing['startHomeport']>) {
  const homeport = await testing().startHomeport(...options)
  atCleanup(() => homeport.stop())
  return homeport
}
