import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, readFileSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { atCleanup, tempDir, waitFor } from '../support/index.js'

/** The lock between processes that keeps two builds of one checkout apart. */

const LOCK = new URL('../../scripts/lib/lock.mjs', import.meta.url).href

/** Starts a process that does `work` while it holds the lock. */
function start(path: string, work: string): { child: ChildProcess; ended: Promise<number | null> } {
  const program = `import { appendFileSync, existsSync } from 'node:fs'
    import { setTimeout as pause } from 'node:timers/promises'
    import { withLock } from ${JSON.stringify(LOCK)}
    await withLock(${JSON.stringify(path)}, async () => { ${work} })`
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: 'inherit' })
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve))
  atCleanup(() => {
    child.kill('SIGKILL')
    return ended.then(() => undefined)
  })
  return { child, ended }
}

it('the lock lets one process at a time work, and leaves nothing behind', async () => {
  const dir = tempDir()
  const [path, log] = [join(dir, 'lock'), join(dir, 'log')]
  const note = (word: string) => `appendFileSync(${JSON.stringify(log)}, '${word}\\n')`
  const work = `${note('in')}; await pause(20); ${note('out')}`
  const ends = Array.from({ length: 4 }, () => start(path, work).ended)
  expect(await Promise.all(ends)).toEqual([0, 0, 0, 0])
  expect(readFileSync(log, 'utf8')).toBe('in\nout\n'.repeat(4))
  expect(existsSync(path)).toBe(false)
})

it('the lock takes over from a process that was killed, or that has shown no life for long', async () => {
  const path = join(tempDir(), 'lock')
  const holder = start(path, 'await pause(1e9)')
  await waitFor(() => existsSync(path) && readFileSync(path, 'utf8') !== '', { what: 'the lock' })
  holder.child.kill('SIGKILL')
  await holder.ended
  expect(existsSync(path)).toBe(true)
  expect(await start(path, '').ended).toBe(0)
  writeFileSync(path, '1 another-machine 0')
  const longAgo = new Date(Date.now() - 60_000)
  utimesSync(path, longAgo, longAgo)
  expect(await start(path, '').ended).toBe(0)
  expect(existsSync(path)).toBe(false)
})
