import { describe, expect, it } from 'vitest'
import { endLine, headerLine, keyLine, type NumberedLine, type StoredKey } from './key-file.js'
import type { KeyReading, RestoreOutcome } from './key-store.js'
import {
  batchesBySize,
  exportKeys,
  foundNames,
  type ImportedKey,
  type ImportOptions,
  importKeys,
} from './key-transfer.js'
import { all, base64, keyOf } from './testing/key-samples.js'

const MIB = 2 ** 20

describe('an export', () => {
  it('reads a bounded number of bytes at a time, and a large key alone', () => {
    expect(batchesBySize(['a', 'b', 'c', 'd', 'e'], [MIB, MIB, 1, 50 * MIB, undefined])).toEqual([
      ['a', 'b'],
      ['c'],
      ['d'],
      ['e'],
    ])
    expect(batchesBySize([], [])).toEqual([])
  })

  it('has a line for each key that can be read, and says which cannot', async () => {
    const refused: string[] = []
    const read = async (names: readonly string[]) =>
      names.map((name): KeyReading => {
        if (name === 'gone') return { kind: 'gone', name }
        return name === 'huge' ? { kind: 'refused', name, problem: 'too large' } : { kind: 'key', key: keyOf(name) }
      })
    const store = { sizes: async (names: readonly string[]) => names.map(() => 1), read }
    const options = {
      base64,
      nowMs: 0,
      onRefused: (name: string, problem: string) => refused.push(`${name} ${problem}`),
    }
    const file = (
      await all(
        exportKeys(
          store,
          [
            ['a', 'gone'],
            ['huge', 'b'],
          ],
          options,
        ),
      )
    ).join('')
    expect(file).toBe(headerLine(0) + keyLine(keyOf('a'), base64) + keyLine(keyOf('b'), base64) + endLine(2))
    expect(refused).toEqual(['huge too large'])
  })

  it('follows the cursor of SCAN to its end', async () => {
    const steps = [
      { cursor: '7', names: ['a', 'a'] },
      { cursor: '9', names: [] },
      { cursor: undefined, names: ['b'] },
    ]
    const asked: string[] = []
    const scan = async (cursor: string) => {
      asked.push(cursor)
      return steps.shift() ?? { cursor: undefined, names: [] }
    }
    expect(await all(foundNames({ scan }, { count: 10 }))).toEqual([['a'], ['b']])
    expect(asked).toEqual(['0', '7', '9'])
  })
})

describe('an import', () => {
  /** A database that has some keys, and what it was asked. */
  function database(existing: readonly string[], answer?: (key: StoredKey) => Promise<RestoreOutcome>) {
    const sent: string[] = []
    const restore = async (key: StoredKey, mode: 'new' | 'replace'): Promise<RestoreOutcome> => {
      sent.push(`${key.name} ${mode}`)
      if (answer) return answer(key)
      return mode === 'new' && existing.includes(key.name) ? { kind: 'exists' } : { kind: 'restored' }
    }
    return { sent, restore }
  }

  async function run(
    store: ReturnType<typeof database>,
    text: string,
    more: Partial<ImportOptions> = {},
  ): Promise<{ end: string; outcomes: string[] }> {
    const outcomes: string[] = []
    const onKey = ({ line, name, outcome }: ImportedKey) => outcomes.push(`${line} ${name ?? '?'} ${outcome}`)
    const options = { base64, existing: 'skip', parallel: 2, now: () => 100, onKey, ...more } as const
    return { end: await importKeys(store, numbered(text), options), outcomes }
  }

  async function* numbered(text: string): AsyncGenerator<NumberedLine> {
    for (const [index, line] of text.split('\n').entries()) yield { number: index + 1, text: line }
  }

  const file = (...keys: StoredKey[]) =>
    headerLine(0) + keys.map((key) => keyLine(key, base64)).join('') + endLine(keys.length)

  it('says for each key what it did', async () => {
    const keys = [keyOf('new'), keyOf('old'), keyOf('past', 99), keyOf('future', 101)]
    const skipping = await run(database(['old']), file(...keys))
    expect(skipping).toEqual({
      end: 'whole',
      outcomes: ['2 new imported', '3 old skipped', '4 past expired', '5 future imported'],
    })
    const replacing = await run(database(['old']), file(...keys), { existing: 'replace' })
    expect(replacing.outcomes[1]).toBe('3 old replaced')
  })

  it('goes on after a line or payload that is wrong', async () => {
    const text = `${headerLine(0)}{"key":"a"}\n${keyLine(keyOf('b'), base64)}${keyLine(keyOf('c'), base64)}`
    const store = database([], async ({ name }) =>
      name === 'b' ? { kind: 'refused', problem: 'wrong payload' } : { kind: 'restored' },
    )
    expect(await run(store, text)).toEqual({ end: 'cut', outcomes: ['2 ? failed', '3 b failed', '4 c imported'] })
  })

  it.each([
    ['another file', 'hello\n', /no file of exported keys/],
    ['an empty file', '', /empty/],
    ['a newer file', headerLine(0).replace('"version":1', '"version":2'), /version 2/],
  ])('refuses %s before it sends anything', async (_what, text, problem) => {
    const store = database([])
    await expect(run(store, text)).rejects.toThrow(problem)
    expect(store.sent).toEqual([])
  })

  it('keeps two lines of one key in order, and no more requests open than asked for', async () => {
    const waiting: (() => void)[] = []
    const store = database([], () => new Promise((resolve) => waiting.push(() => resolve({ kind: 'restored' }))))
    const ended = run(store, file(keyOf('a'), keyOf('a'), keyOf('b'), keyOf('c')))
    const answer = async () => {
      await expect.poll(() => waiting.length).toBeGreaterThan(0)
      waiting.shift()?.()
    }
    await expect.poll(() => waiting.length).toBe(1)
    expect(store.sent).toEqual(['a new'])
    await answer()
    await expect.poll(() => waiting.length).toBe(2)
    expect(store.sent).toEqual(['a new', 'a new', 'b new'])
    for (let left = 3; left > 0; left--) await answer()
    expect((await ended).end).toBe('whole')
  })

  it('stops when the database does not answer, and says that the key may be there', async () => {
    const store = database([], () => Promise.reject(new Error('no connection')))
    const outcomes: ImportedKey[] = []
    const options = { parallel: 1, onKey: (key: ImportedKey) => outcomes.push(key) }
    await expect(run(store, file(keyOf('a'), keyOf('b'), keyOf('c')), options)).rejects.toThrow('no connection')
    expect(outcomes).toEqual([
      { line: 2, name: 'a', outcome: 'failed', problem: 'no answer: it may have been imported' },
    ])
  })
})
