import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { bundleProgram } from '../../test/support/index.js'
import { HomeportError } from '../contract/errors/errors.js'
import { inspectDataDir, lockDataDir } from './index.js'

let root = ''
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'hp-lock-'))
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

function errorOf(action: () => unknown): HomeportError {
  try {
    action()
  } catch (error) {
    if (error instanceof HomeportError) return error
    throw error
  }
  throw new Error('nothing was thrown')
}

/** Starts a process that locks the directory and keeps running. */
async function lockElsewhere(directory: string) {
  const module = join(await bundleProgram({ 'data-dir': ['src/config/data-dir.ts'] }), 'data-dir.js')
  const code = `const { lockDataDir } = await import(${JSON.stringify(module)})
    lockDataDir(${JSON.stringify(directory)}); console.log('locked'); process.stdin.resume()`
  const child = spawn(process.execPath, ['--input-type=module', '-e', code])
  child.stderr.pipe(process.stderr)
  await once(child.stdout, 'data')
  return child
}

it('locking creates the data directory with mode 0700 and holds it until the release', () => {
  const directory = join(root, 'a', 'b')
  const lock = lockDataDir(directory)
  expect(statSync(directory).mode & 0o777).toBe(0o700)
  expect(statSync(join(directory, 'lock.pid')).mode & 0o777).toBe(0o600)
  const error = errorOf(() => lockDataDir(directory))
  expect(error.code).toBe('data_dir_locked')
  expect(error.message).toContain(`(process ${process.pid}) already uses the data directory ${directory}`)
  lock.release()
  lock.release()
  lockDataDir(directory).release()
  expect(existsSync(join(directory, 'lock.pid'))).toBe(false)
})

it('a data directory is free after the other process was killed, whatever files it left', async () => {
  const child = await lockElsewhere(root)
  expect(inspectDataDir(root)).toEqual({ state: 'locked', mode: 0o700, pid: child.pid })
  expect(errorOf(() => lockDataDir(root)).details).toEqual({ directory: root, pid: child.pid })
  child.kill('SIGKILL')
  await once(child, 'exit')
  expect(inspectDataDir(root)).toEqual({ state: 'free', mode: 0o700 })
  lockDataDir(root).release()
})

it('an inspection locks and creates nothing', () => {
  expect(inspectDataDir(join(root, 'none'))).toEqual({ state: 'missing' })
  mkdirSync(join(root, 'open'))
  chmodSync(join(root, 'open'), 0o755)
  expect(inspectDataDir(join(root, 'open'))).toEqual({ state: 'free', mode: 0o755 })
  expect(existsSync(join(root, 'open', 'lock'))).toBe(false)
})

it('the error says why a data directory cannot be used', () => {
  const path = join(root, 'file')
  writeFileSync(path, '')
  expect(inspectDataDir(path)).toEqual({ state: 'unusable', reason: 'it is not a directory' })
  expect(errorOf(() => lockDataDir(path)).message).toContain('cannot be used: a file with this name exists.')
  expect(errorOf(() => lockDataDir(join(path, 'below'))).message).toContain('a part of the path is a file')
  const link = join(root, 'link')
  symlinkSync(join(root, 'unmounted'), link)
  expect(errorOf(() => lockDataDir(link)).message).toContain('it is a symbolic link to a missing place')
  expect(errorOf(() => lockDataDir(join(root, 'x'.repeat(300)))).message).toContain('its path is too long')
})
