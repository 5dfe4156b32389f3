/** Runs before every test file: closes whatever the helpers of this folder opened when the file is done. */
import { afterAll, expect } from 'vitest'
import { cleanup } from './cleanup.js'
import { noteCost } from './file-cost.js'

// The hook registered last runs first, so the cost includes the cleanup.
const note = noteCost(process.env.HOMEPORT_TEST_COSTS)
afterAll(() => note(expect.getState().testPath))
afterAll(cleanup)
