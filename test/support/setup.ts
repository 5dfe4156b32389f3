/** Runs before every test file: closes whatever the helpers of this folder opened when the file is done. */
import { afterAll } from 'vitest'
import { cleanup } from './cleanup.js'

afterAll(cleanup)
