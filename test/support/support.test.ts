import { existsSync } from 'node:fs'
import { createServer } from 'node:net'
import { expect, it } from 'vitest'
import { atCleanup, cleanup, freePort, isPortFree, processesMarked, run, tempDir, waitFor } from './index.js'
import { filesInTurn } from './turns.js'

it('waits until the condition answers and returns the answer', async () => {
  let looks = 0
  expect(await waitFor(() => (++looks === 3 ? 'there' : undefined), { what: 'the third look' })).toBe('there')
})

it('gives up at the deadline, with the awaited condition and the last error', async () => {
  const failing = () => {
    throw new Error('still broken')
  }
  await expect(waitFor(failing, { what: 'a miracle', deadlineMs: 20 })).rejects.toThrow(
    'gave up waiting for a miracle after 20 ms (Error: still broken)',
  )
})

it('knows the files that take turns, and those that every run plays', () => {
  expect(filesInTurn()).toEqual(expect.arrayContaining(['test/crash/nodes.test.ts', 'test/console/queue.test.ts']))
  expect(filesInTurn().filter((path) => !existsSync(path) || /house|readme/.test(path))).toEqual([])
})

it('hands out free ports, each once, and sees a port that is taken', async () => {
  const [first, second] = [await freePort(), await freePort()]
  expect(first).not.toBe(second)
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(first, '127.0.0.1', resolve))
  atCleanup(() => void server.close())
  expect(await isPortFree(first)).toBe(false)
})

it('runs the newest cleanup first, continues after a failure, and reports it', async () => {
  const order: number[] = []
  const directory = tempDir()
  atCleanup(() => void order.push(1))
  atCleanup(() => Promise.reject(new Error('could not undo')))
  atCleanup(() => void order.push(3))
  await expect(cleanup()).rejects.toThrow('could not undo')
  expect(order).toEqual([3, 1])
  expect(existsSync(directory)).toBe(false)
})

it('finds a process by a mark in its environment', async () => {
  const self = await run(process.execPath, ['-e', 'console.log(process.env.MARK)'], { env: { MARK: 'a-mark' } })
  expect(self).toEqual({ code: 0, stdout: 'a-mark\n', stderr: '' })
  expect(processesMarked('no-process-has-this-mark-'.concat('anywhere'))).toEqual([])
})
