import { expect, it } from 'vitest'
import { systemClock } from '../../base/index.js'
import { Guard } from './guard.js'

/** Whether a home may answer: it depends on the rows that it has read, and on whether it may have been declared dead. */

function guardOf() {
  const node = { mayAct: true }
  const guard = new Guard({ mayAct: () => node.mayAct }, systemClock)
  return { node, guard }
}

it('a home that may be dead answers only for databases that nobody may take over', () => {
  const { node, guard } = guardOf()
  guard.read([{ databaseId: 'guarded', node: 'b', mayTake: true }])
  node.mayAct = false
  expect([guard.mayServe('guarded'), guard.mayServe('alone')]).toEqual([false, true])
})

it('a home that wakes up answers nothing for a database that was taken over, although its rows are gone', () => {
  const { node, guard } = guardOf()
  guard.read([{ databaseId: 'guarded', node: 'b', mayTake: true }])
  node.mayAct = false
  // The rows name another home by now, so the home reads none.
  guard.read([])
  expect(guard.mayServe('guarded')).toBe(false)
  node.mayAct = true
  guard.read([])
  node.mayAct = false
  expect(guard.mayServe('guarded')).toBe(true)
})

it('a home that does not know the rows yet assumes that every database may have been taken over', () => {
  const { node, guard } = guardOf()
  expect(guard.mayServe('any')).toBe(true)
  node.mayAct = false
  guard.read([])
  guard.begin({ databaseId: 'one', node: 'b' })
  expect([guard.mayServe('any'), guard.nodesOf('any')]).toEqual([false, undefined])
})

it('both of two standbys that may take over have to promise not to', () => {
  const { node, guard } = guardOf()
  const [b, c] = [
    { databaseId: 'guarded', node: 'b', mayTake: true },
    { databaseId: 'guarded', node: 'c', mayTake: true },
  ]
  guard.read([b])
  guard.begin(c)
  node.mayAct = false
  guard.promised(b, guard.now())
  expect([guard.mayServe('guarded'), guard.nodesOf('guarded')]).toEqual([false, ['b', 'c']])
  guard.promised(c, guard.now())
  expect(guard.mayServe('guarded')).toBe(true)
  // The first promise is new, the second one is 4 s old and no longer counts.
  node.mayAct = true
  guard.read([b, { databaseId: 'other', node: 'c', mayTake: true }])
  guard.read([b, c])
  node.mayAct = false
  guard.promised(b, guard.now())
  guard.promised(c, { monotonicMs: guard.now().monotonicMs - 4_000, wallMs: guard.now().wallMs })
  expect(guard.mayServe('guarded')).toBe(false)
})

it('a standby that the store may know as complete has to promise until the store has answered', () => {
  const { node, guard } = guardOf()
  const behind = { databaseId: 'guarded', node: 'b', mayTake: false }
  const mayServeAlone = () => {
    node.mayAct = false
    const mayServe = guard.mayServe('guarded')
    node.mayAct = true
    return mayServe
  }
  guard.read([behind])
  expect(mayServeAlone()).toBe(true)
  // The answer to the commit is lost, and the rows that are read are older than the commit.
  guard.begin(behind)
  guard.read([behind])
  expect(mayServeAlone()).toBe(false)
  // The next commit about it is answered.
  guard.settled(behind)
  guard.read([behind])
  expect(mayServeAlone()).toBe(true)
  // The standby is removed before the store has answered.
  guard.begin(behind)
  guard.read([])
  guard.read([behind])
  expect(mayServeAlone()).toBe(true)
})
