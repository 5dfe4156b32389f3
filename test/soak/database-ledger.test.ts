import { beforeEach, describe, expect, it } from 'vitest'
import { DatabaseLedger } from './database-ledger.js'

let kills: number[]
let ledger: DatabaseLedger

beforeEach(() => {
  kills = []
  ledger = new DatabaseLedger(kills)
})

function write(key: string, number: number): void {
  ledger.sending(key, number)
  ledger.answered(key, number)
}

describe('the ledger of databases', () => {
  it('accepts acknowledged values, and sent ones without an acknowledgement', () => {
    write('a', 1)
    ledger.sending('a', 2)
    ledger.saw('a', '1')
    ledger.saw('a', '2')
    expect(ledger.violations).toEqual([])
  })

  it('reports a lost acknowledged write, once', () => {
    write('a', 1)
    write('a', 2)
    ledger.saw('a', '1')
    ledger.saw('a', '1')
    expect(ledger.violations).toEqual(['a holds 1, and 2 was answered (1 answers)'])
  })

  it('reports a lost key, and a value that was never written', () => {
    write('a', 1)
    ledger.saw('a', null)
    ledger.saw('b', '7')
    ledger.saw('b', 'nonsense')
    expect(ledger.violations).toHaveLength(3)
  })

  it('counts losses of writes just before a kill of the engine as documented', () => {
    write('a', 1)
    write('a', 2)
    kills.push(Date.now() + 1_500)
    ledger.saw('a', '1')
    expect([ledger.violations, ledger.lostWithinWindow]).toEqual([[], 1])
  })

  it('does not excuse a loss by an engine that was killed long after', () => {
    write('a', 1)
    kills.push(Date.now() + 10_000)
    ledger.saw('a', null)
    expect(ledger.violations).toHaveLength(1)
  })

  it('reports elements of a list that are lost, out of order, duplicate, or unknown', () => {
    for (const number of [1, 2, 3]) ledger.appending('l', number)
    ledger.appended('l', 1)
    ledger.appended('l', 2)
    ledger.sawList('l', ['1', '2'])
    ledger.sawList('l', ['1', '2', '3'])
    expect(ledger.violations).toEqual([])
    ledger.sawList('l', ['1'])
    ledger.sawList('l', ['2', '1'])
    ledger.sawList('l', ['1', '1'])
    ledger.sawList('l', ['1', '9'])
    expect(ledger.violations).toEqual([
      'l lacks 2',
      'l holds 1 behind 2',
      'l holds 1 behind 1',
      'l holds 9, which nobody appended',
    ])
  })
})
