import { expect, it } from 'vitest'
import { yieldToEventLoop } from '../../base/index.js'
import { WaitingSenders } from './waiting-senders.js'

it('a free connection lets waiting senders continue in order, a few in a turn, until it is congested again', async () => {
  let sent: number[] = []
  const senders = new WaitingSenders(() => sent.length >= 6)
  for (let sender = 0; sender < 12; sender++) senders.add(() => sent.push(sender))
  senders.release()
  expect(sent).toEqual([0, 1, 2, 3])
  await yieldToEventLoop()
  expect(sent).toEqual([0, 1, 2, 3, 4, 5, 6, 7])
  await yieldToEventLoop()
  sent = []
  senders.release()
  expect(sent).toEqual([8, 9, 10, 11])
})

it('all waiting senders continue when the connection has ended', () => {
  const sent: number[] = []
  const senders = new WaitingSenders(() => true)
  for (let sender = 0; sender < 12; sender++) senders.add(() => sent.push(sender))
  senders.release()
  expect(sent).toEqual([])
  senders.releaseAll()
  expect(sent).toHaveLength(12)
})
