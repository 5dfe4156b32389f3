import { createServer } from 'node:net'
import { expect, it } from 'vitest'
import { atCleanup, freePort } from '../../test/support/index.js'
import { loadConfig } from '../config/index.js'
import { HomeportError } from '../contract/errors/errors.js'
import { describeError } from './errors.js'

/** The error of a listener on a port that is in use. */
async function errorOfTakenPort(port: number): Promise<unknown> {
  const [first, second] = [createServer(), createServer()]
  await new Promise<void>((resolve) => first.listen(port, '127.0.0.1', resolve))
  atCleanup(() => void first.close())
  return await new Promise((resolve) => second.once('error', resolve).listen(port, '127.0.0.1'))
}

it('names the option of a port that is taken', async () => {
  const port = await freePort()
  const error = await errorOfTakenPort(port)
  expect(describeError(error, loadConfig({ flags: { queuePort: String(port) } }))).toBe(
    `Port ${port} is in use by another program. Stop that program (\`homeport doctor\` names it), ` +
      'or choose another port with --queue-port.',
  )
  expect(describeError(error)).toContain('or choose another port.')
})

it('names the option of the port that databases share', () => {
  const taken = new HomeportError('port_taken', { port: 8_703 })
  expect(describeError(taken, loadConfig({ flags: {} }))).toContain('or choose another port with --redis-domain-port.')
})

it.each([
  [
    { code: 'EADDRNOTAVAIL', address: '192.0.2.1', port: 8_700 },
    'This machine does not have the address 192.0.2.1. Correct',
  ],
  [{ code: 'EAFNOSUPPORT', address: '::1', port: 8_700 }, 'This machine does not have the address ::1. Correct --host'],
  [
    { code: 'ENOTFOUND', syscall: 'getaddrinfo', hostname: 'localhost' },
    'The name localhost cannot be resolved (ENOTFOUND).',
  ],
  [{ code: 'EACCES', address: '127.0.0.1', port: 443 }, 'This user may not listen on port 443.'],
  [{ code: 'EMFILE' }, 'This process may not open more files. Raise the limit (`ulimit -n`'],
  [{ code: 'ENOENT', syscall: 'uv_cwd' }, 'The current folder does not exist any more. Change to another one'],
])('the command line says what to do about %o', (fields, expected) => {
  expect(describeError(Object.assign(new Error('of the system'), fields))).toContain(expected)
})

it('the command line describes errors of the catalogue, several errors at once, and unknown errors', () => {
  const locked = new HomeportError('data_dir_locked', { directory: '/d', pid: 7 })
  expect(describeError(locked)).toContain('Another Homeport (process 7) already uses the data directory /d.')
  const cause = new Error('canceling statement due to lock timeout (55P03)')
  expect(describeError(new HomeportError('store_unavailable', {}, { cause }))).toMatch(
    /in a moment\. The reason: canceling statement due to lock timeout \(55P03\)\.$/,
  )
  expect(describeError(new AggregateError([new Error('one'), 'two'], 'both'))).toBe('one; two')
})

it('the command line says what to do when the disk is full', () => {
  const full = Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' })
  expect(describeError(full)).toBe(
    'The disk is full, or has no inode left (`df -i`). Free space on the disk of the data directory and try again.',
  )
})
