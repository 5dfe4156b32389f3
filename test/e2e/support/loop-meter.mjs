/**
 * Loaded into a server under test: measures how long its event loop works at a stretch, as processor time of the main
 * thread, which a busy machine does not inflate. Answers the longest stretch since the last question, in milliseconds,
 * on the socket that `LOOP_METER` names.
 */
import { existsSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { isMainThread } from 'node:worker_threads'

const { LOOP_METER: path } = process.env

if (isMainThread && path !== undefined && process.argv[1]?.endsWith('main.js') && process.argv[2] === 'start') {
  // The first thread of a process has its id. Where there is no such file, the time that has passed has to do.
  const times = `/proc/self/task/${process.pid}/schedstat`
  const workedMs = existsSync(times)
    ? () => Number(readFileSync(times, 'latin1').split(' ', 1)[0]) / 1e6
    : () => performance.now()
  let last = workedMs()
  let longest = 0
  const look = () => {
    const now = workedMs()
    longest = Math.max(longest, now - last)
    last = now
  }
  setInterval(look, 1).unref()
  const server = createServer((socket) => {
    look()
    socket.on('error', () => undefined)
    socket.end(String(longest))
    longest = 0
  })
  server.on('error', () => undefined)
  server.listen(path).unref()
}
