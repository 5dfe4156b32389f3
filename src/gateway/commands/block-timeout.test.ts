import { expect, it } from 'vitest'
import { blockTimeoutMs } from './block-timeout.js'

const of = (command: string): number | undefined => {
  const words = command.split(' ')
  return blockTimeoutMs(
    words[0] ?? '',
    words.map((word) => Buffer.from(word)),
  )
}

it.each([
  ['BLPOP list other 0.05', 50],
  ['BZPOPMIN set 2', 2_000],
  ['BLMOVE from to LEFT RIGHT 1.5', 1_500],
  ['BRPOPLPUSH from to 3', 3_000],
  ['BLMPOP 0.25 1 list LEFT', 250],
  ['BZMPOP 4 1 set MIN', 4_000],
  ['XREAD COUNT 1 BLOCK 20 STREAMS s 0', 20],
  ['XREADGROUP GROUP g c block 300 STREAMS s >', 300],
  ['WAIT 1 700', 700],
  ['WAITAOF 1 0 800', 800],
])('the gateway knows how long %s waits', (command, ms) => {
  expect(of(command)).toBe(ms)
})

it.each([
  'BLPOP list 0',
  'BLPOP list soon',
  'BLPOP list -1',
  'BLPOP list 1e9',
  'XREAD BLOCK 0 STREAMS s 0',
  'WAIT 1 0',
  'BLPOP',
])('the gateway sees that %s waits for good or is refused', (command) => {
  expect(of(command)).toBeUndefined()
})
