import { expect, it } from 'vitest'
import { systemClock } from '../../base/index.js'
import { Guard } from './guard.js'

/** Whether a home may answer, by what it has read and by whether its life may be over. */

function guardOf() {
  const life = { mayAct: true }
  const guard = new Guard({ mayAct: () => life.mayAct }, systemClock)
  return { life, guard }
}

it('a home that may be dead answers only for databases that nobody may take over', () => {
  const { life, guard } = guardOf()
  guard.read(['guarded'])
  life.mayAct = false
  expect([guard.mayServe('guarded'), guard.mayServe('alone')]).toEqual([false, true])
})

it('a home that wakes up answers nothing for a database that was taken over, although its rows are gone', () => {
  const { life, guard } = guardOf()
  guard.read(['guarded'])
  life.mayAct = false
  // The rows name another home by now.
  guard.read([])
  expect(guard.mayServe('guarded')).toBe(false)
  life.mayAct = true
  guard.read([])
  life.mayAct = false
  expect(guard.mayServe('guarded')).toBe(true)
})

it('before the rows are known, every database may have been taken over', () => {
  const { life, guard } = guardOf()
  expect(guard.mayServe('any')).toBe(true)
  life.mayAct = false
  guard.read([])
  expect([guard.mayServe('any'), guard.isGuarded('any')]).toEqual([false, true])
})
