/** Runs in front of every test file: whatever the helpers of this folder opened is closed when the file is done. */
import { afterAll } from 'vitest'
import { cleanup } from './cleanup.js'

afterAll(cleanup)
