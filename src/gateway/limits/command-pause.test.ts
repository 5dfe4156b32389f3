import { expect, it } from 'vitest'
import { ManualClock } from '../../base/testing/manual-clock.js'
import { findRow } from '../commands/command-table.js'
import { readingFunctions } from './command-effect.js'
import { CommandPause } from './command-pause.js'

function newPause(listFunctions = () => Promise.reject(new Error('lost'))): {
  pause: CommandPause
  clock: ManualClock
  isHeld: (...args: readonly string[]) => boolean | Promise<void>
} {
  const clock = new ManualClock()
  const pause = new CommandPause(clock, listFunctions)
  const isHeld = (...args: readonly string[]): boolean | Promise<void> => {
    const row = findRow(args[0] ?? '')
    if (!row) throw new Error(`no row for ${args[0]}`)
    return pause.holds(row, () => ({ args, count: args.length }))
  }
  return { pause, clock, isHeld }
}

it('a later pause only extends and widens the active one', () => {
  const { pause, clock } = newPause()
  pause.begin('write', 1_000)
  pause.begin('write', 100)
  clock.advance(500)
  expect(pause.mode).toBe('write')
  pause.begin('all', 100)
  clock.advance(499)
  expect(pause.mode).toBe('all')
  pause.begin('write', 1_000)
  clock.advance(999)
  expect(pause.mode).toBe('all')
  clock.advance(1)
  expect(pause.mode).toBeUndefined()
  pause.begin('all', 0)
  expect(pause.mode).toBeUndefined()
})

it('a pause holds a function call when the engine cannot list its functions', async () => {
  const { pause, isHeld } = newPause()
  pause.begin('write', 1_000)
  await isHeld('FCALL', 'f', '0')
  expect(isHeld('FCALL', 'f', '0')).toBe(true)
  expect(isHeld('FCALL', 'f')).toBe(false)
  expect(isHeld('FCALL_RO', 'f', '0')).toBe(false)
})

it('the gateway finds the functions that only read', () => {
  const bulk = (text: string): string => `$${text.length}\r\n${text}\r\n`
  const row = (name: string, flags: readonly string[], about: string): string =>
    `*6\r\n${bulk('name')}${bulk(name)}${bulk('description')}${about}${bulk('flags')}*${flags.length}\r\n` +
    flags.map((flag) => `+${flag}\r\n`).join('')
  const lying = bulk(`${bulk('flags')}*1\r\n+no-writes\r\n`)
  const functions = row('f', ['no-writes', 'allow-stale'], '$-1\r\n') + row('g', [], lying)
  const library = `*6\r\n${bulk('library_name')}${bulk('functions')}${bulk('engine')}${bulk('LUA')}${bulk('functions')}*2\r\n`
  expect([...readingFunctions(Buffer.from(`*1\r\n${library}${functions}`))]).toEqual(['f'])
  expect([...readingFunctions(Buffer.from('-ERR unknown command\r\n'))]).toEqual([])
})
