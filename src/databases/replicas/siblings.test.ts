import { expect, it } from 'vitest'
import type { Incarnation } from '../../cluster/index.js'
import { ForwardedAnswers } from './forwarded-answers.js'
import { Siblings } from './siblings.js'

/** A read region with several nodes: one keeps the replica, and its siblings pass answers of the home on to clients. */

const question = { databaseId: 'db', keys: ['token', 'name'] }

function region(...incarnations: Incarnation[]) {
  const passed = new Map(incarnations.map((incarnation) => [incarnation, new ForwardedAnswers()]))
  const siblings = new Siblings()
  siblings.are(incarnations)
  const noted: string[] = []
  const ask = async (asked: readonly Incarnation[]) =>
    new Map(
      asked.flatMap((incarnation) =>
        passed.has(incarnation) ? [[incarnation, passed.get(incarnation)?.answerQuestion(question, 1).count ?? 0]] : [],
      ),
    )
  return { passed, siblings, noted, asked: () => siblings.ask(ask, () => noted.push('more')) }
}

it('answers that a sibling has passed on under any key are noted once, before the read is answered', async () => {
  const { passed, siblings, noted, asked } = region(2)
  expect([siblings.areNone, await asked(), noted.splice(0)]).toEqual([false, true, ['more']])
  expect([await asked(), noted]).toEqual([true, []])
  for (const key of ['db', 'token', 'name']) {
    passed.get(2)?.count(key)
    expect([await asked(), noted.splice(0)]).toEqual([true, ['more']])
  }
  passed.get(2)?.count('token of another database')
  expect([await asked(), noted]).toEqual([true, []])
})

it('an answer that a sibling passes on after a question began is found by the next question', async () => {
  const { passed, noted, asked } = region(2)
  await asked()
  noted.length = 0
  const first = asked()
  passed.get(2)?.count('db')
  await Promise.all([first, asked(), asked()])
  expect(noted).toEqual(['more'])
})

it('a sibling that is gone, new or unknown may have passed something on', async () => {
  const { passed, siblings, noted, asked } = region(2, 3)
  await asked()
  for (const incarnations of [[2], [2, 4], undefined, [2], []]) {
    noted.length = 0
    if (incarnations)
      for (const incarnation of incarnations)
        if (!passed.has(incarnation)) passed.set(incarnation, new ForwardedAnswers())
    siblings.are(incarnations)
    expect([incarnations, siblings.areNone, await asked(), noted]).toEqual([
      incarnations,
      false,
      incarnations !== undefined,
      incarnations ? ['more'] : [],
    ])
  }
  expect(siblings.areNone).toBe(true)
})

it('while a sibling does not answer, the home answers reads, and the sibling is not asked again for a while', async () => {
  const { passed, asked } = region(2)
  const [kept] = [...passed]
  passed.clear()
  expect(await asked()).toBe(false)
  if (kept) passed.set(...kept)
  expect(await asked()).toBe(false)
})

it('a node that counts very many keys says that all have grown, and forgets a node that kept the replica', () => {
  const passed = new ForwardedAnswers()
  passed.count('db')
  const { count } = passed.answerQuestion(question, 7)
  for (let key = 0; key < 100_000; key++) passed.count(`k${key}`)
  expect(passed.answerQuestion(question, 7).count).toBeGreaterThan(count)
  expect([passed.replicaNode('token'), passed.replicaNode('other')]).toEqual([7, undefined])
  passed.forgetNode(7)
  expect(passed.replicaNode('token')).toBeUndefined()
})
