/**
 * Loaded into a process before everything else (`NODE_OPTIONS=--import=…`): its wall clock differs from that of the machine
 * by the milliseconds in the file `HOMEPORT_TEST_CLOCK_SHIFT`, in every thread. The file is read ten times a second, so the
 * clock can jump while the process runs. Timers and the monotonic clock stay as they are.
 */
import { readFileSync } from 'node:fs'

const file = process.env.HOMEPORT_TEST_CLOCK_SHIFT
const realNow = Date.now
let shiftMs = 0

function read() {
  shiftMs = Number(readFileSync(file, 'utf8')) || 0
}

if (file) {
  read()
  setInterval(read, 100).unref()
  Date.now = () => realNow() + shiftMs
  globalThis.Date = class extends Date {
    constructor(...values) {
      if (values.length === 0) super(realNow() + shiftMs)
      else super(...values)
    }
  }
}
