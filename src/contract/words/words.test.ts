import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { andMore, bytes, counted, dollars, duration, whole } from './figures.js'
import { planWords } from './plans.js'
import * as states from './states.js'

const { pauseWord, stateOfDatabase: _, ...tables } = states
/** Tables that are made of others. */
const COMPOSED = new Set(['RUN_EVENT_WORDS', 'STANDING_WORDS'])

const GLOSSARY = readFileSync(new URL('../../../docs/glossary.md', import.meta.url), 'utf8')

/** A row of the glossary: `| STEP | \`STEP_RETRY\` retrying, ... |`. */
const rowOf = (words: states.StateWords<string>): string =>
  Object.entries(words)
    .map(([wire, { word }]) => (wire === word ? word : `${word} (\`${wire}\`)`))
    .join(', ')

it('each state is shown by the word of the glossary', () => {
  const missing = Object.entries(tables)
    .filter(([name, words]) => !COMPOSED.has(name) && !GLOSSARY.includes(`| ${rowOf(words)} |`))
    .map(([name, words]) => `${name}: | ${rowOf(words)} |`)
  expect(missing).toEqual([])
  expect(GLOSSARY).toContain(`| ${[false, true].map((isPaused) => pauseWord(isPaused).word).join(', ')} |`)
})

it('a state has one word and one tone, whatever has it', () => {
  const tones = new Map<string, Set<string>>()
  for (const words of Object.values(tables))
    for (const { word, tone } of Object.values<states.StateWord>(words))
      tones.set(word, (tones.get(word) ?? new Set()).add(tone))
  const twice = [...tones].filter(([, found]) => found.size > 1).map(([word, found]) => [word, ...found])
  // A run is cancelled; that a bulk action has cancelled an item is its success. So it is with a pause.
  expect(twice.filter(([word]) => word !== 'cancelled' && word !== 'paused')).toEqual([
    // An active account is as it should be; an active run or step is in progress.
    ['active', 'busy', 'ok'],
  ])
  expect([...tones.keys()].filter((word) => word !== word.toLowerCase() || /cancell?ed\b/.test(word))).toEqual([
    'cancelled',
    'to be cancelled',
  ])
})

it.each([
  [counted(0, 'run'), '0 runs'],
  [counted(1, 'run'), '1 run'],
  [counted(2_000, 'entry', 'entries'), '2,000 entries'],
  [andMore(1), 'and 1 more'],
  [andMore(1_200), 'and 1,200 more'],
  [bytes(0), '0 B'],
  [bytes(1_023), '1023 B'],
  [bytes(1_536), '1.5 KB'],
  [bytes(2 ** 20 - 1), '1 MB'],
  [bytes(6.7 * 2 ** 20), '6.7 MB'],
  [dollars(0), '$0'],
  [dollars(0.4), '$0.40'],
  [dollars(0.00068), '$0.00068'],
  [dollars(0.000004), '<$0.0001'],
  [dollars(1_234.5), '$1,234.50'],
  [duration(40), '40ms'],
  [duration(61_400), '1m 1s'],
  [duration(93_784_000), '1d 2h'],
  [planWords('paid', 250 * 2 ** 20), 'fixed 250 MB'],
  [planWords('payg', 0), 'pay as you go'],
  [planWords('pro', 2 ** 30), 'production pack, 1 GB'],
])('%s is %s', (text, expected) => {
  expect(text).toBe(expected)
})

it('numbers have separated thousands', () => {
  expect([0, 7, 999, 1_000, 12_345.6, 1_234_567, -1_000].map(whole)).toEqual([
    ...['0', '7', '999', '1,000', '12,346', '1,234,567', '-1,000'],
  ])
})
