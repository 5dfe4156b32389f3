import { describe, expect, it } from 'vitest'
import * as messagesPublish from '../../src/queue/transactions/messages-publish.js'
import { openStore } from '../../src/store/index.js'
import { tempDir } from '../support/index.js'
import { accountOf, type Breaches, NO_BREACHES } from './queue-account.js'
import { type Arrival, QueueLedger } from './queue-ledger.js'
import { loseMessage, type StoredMessage, storedMessages } from './queue-ledger-store.js'

/** The crash test depends on its ledger: every loss and every repetition must show there. */

interface Books {
  readonly ledger: QueueLedger
  readonly stored: StoredMessage[]
}

function arrival(messageId: string, path: string, more: Partial<Arrival> = {}): Arrival {
  const plain = { retried: 0, scheduleId: undefined, life: 0, isSuccess: true, about: undefined }
  return { messageId, path, ...plain, ...more }
}

const stored = (message_id: string, state: StoredMessage['state'], schedule_id: string | null = null) => ({
  message_id,
  state,
  schedule_id,
})

/** The books of a correct server, with an entry of every kind. */
function correctBooks(): Books {
  const ledger = new QueueLedger()
  ledger.accept('observed', 'delivered')
  ledger.accept('dead', 'dead')
  ledger.accept('gone', 'cancelled')
  ledger.accept('later', 'pending')
  ledger.accept('fifo1', 'delivered')
  ledger.accept('fifo2', 'delivered')
  ledger.accept('item1', 'delivered')
  ledger.accept('item2', 'delivered')
  ledger.batches.push(['ok/1', 'ok/2'])
  ledger.fires.set('schedule', 1)
  ledger.once.add('ok/once')
  ledger.sealed.add('gone')
  ledger.sealed.add('older')
  ledger.bursts.set('ok/burst', { acknowledged: ['older', 'newest'], replaced: new Set(['older']), isComplete: true })
  ledger.bursts.set('ok/cut-off', { acknowledged: ['older'], replaced: new Set(), isComplete: false })
  const callbackOf = (messageId: string) => ({ about: { messageId, retried: 0 } })
  const arrivals = [
    arrival('observed', 'observed/1'),
    arrival('callback', 'callback/1', callbackOf('observed')),
    arrival('dead', 'dead/2', { isSuccess: false }),
    arrival('reported', 'failure/2', callbackOf('dead')),
    arrival('fifo1', 'fifo/alpha/1'),
    arrival('fifoback1', 'fifo-callback/alpha/1', callbackOf('fifo1')),
    arrival('fifo2', 'fifo/alpha/2'),
    arrival('fifoback2', 'fifo-callback/alpha/2', callbackOf('fifo2')),
    arrival('item1', 'ok/1'),
    arrival('item2', 'ok/2'),
    // Sent again after a crash.
    arrival('item2', 'ok/2', { life: 1 }),
    arrival('only', 'ok/once'),
    arrival('newest', 'ok/burst'),
    arrival('unacknowledged', 'ok/cut-off'),
    arrival('fire', 'ok/3', { scheduleId: 'schedule' }),
  ]
  for (const one of arrivals) ledger.arrive(one)
  const others = [
    'callback',
    'reported',
    'fifo1',
    'fifoback1',
    'fifo2',
    'fifoback2',
    'item1',
    'item2',
    'only',
    'observed',
    'newest',
    'unacknowledged',
  ]
  return {
    ledger,
    stored: [
      ...others.map((id) => stored(id, 'delivered')),
      stored('dead', 'failed'),
      stored('gone', 'canceled'),
      stored('older', 'canceled'),
      stored('later', 'pending'),
      stored('fire', 'delivered', 'schedule'),
    ],
  }
}

const without = (books: Books, ...ids: string[]): Books => ({
  ...books,
  stored: books.stored.filter(({ message_id }) => !ids.includes(message_id)),
})

/** The same books without any arrival of some messages. */
function unarrived(books: Books, ...ids: string[]): Books {
  const kept = books.ledger.arrivals.filter(({ messageId }) => !ids.includes(messageId))
  books.ledger.arrivals.splice(0, books.ledger.arrivals.length, ...kept)
  return books
}

function arrived(books: Books, ...more: readonly Arrival[]): Books {
  for (const one of more) books.ledger.arrive(one)
  return books
}

type Plant = readonly [what: string, breach: keyof Breaches, plant: (books: Books) => Books]

const PLANTS: readonly Plant[] = [
  ['an acknowledged delayed message', 'wrongEnds', (books) => without(books, 'later')],
  ['the delivery of a message that is stored as delivered', 'wrongEnds', (books) => unarrived(books, 'item1', 'item2')],
  [
    'an acknowledged cancellation',
    'wrongEnds',
    (books) => ({
      ...books,
      stored: [...without(books, 'gone').stored, stored('gone', 'delivered')],
    }),
  ],
  [
    'the turn of a message of a queue',
    'wrongEnds',
    (books) => ({
      ...books,
      stored: [...without(books, 'fifo2').stored, stored('fifo2', 'held')],
    }),
  ],
  ['an item of a batch', 'tornBatches', (books) => unarrived(books, 'item2')],
  ['the newest message of a burst', 'wrongBursts', (books) => unarrived(books, 'newest')],
  ['every message of a burst that a crash has cut off', 'wrongBursts', (books) => unarrived(books, 'unacknowledged')],
  ['a callback', 'missingCallbacks', (books) => unarrived(books, 'callback')],
  ['a failure callback', 'missingCallbacks', (books) => unarrived(books, 'reported')],
  ['a fire of a schedule', 'wrongFires', (books) => unarrived(without(books, 'fire'), 'fire')],
  ['a message that was delivered and not acknowledged', 'strangers', (books) => without(books, 'only')],
]

const REPETITIONS: readonly Plant[] = [
  ['an attempt without a crash', 'unexplained', (books) => arrived(books, arrival('observed', 'observed/1'))],
  [
    'a message of a queue after the next one',
    'outOfOrder',
    (books) => arrived(books, arrival('fifo1', 'fifo/alpha/1', { life: 1 })),
  ],
  [
    'a callback',
    'doubleCallbacks',
    (books) => {
      const again = arrival('callback2', 'callback/1', { about: { messageId: 'observed', retried: 0 } })
      return arrived({ ...books, stored: [...books.stored, stored('callback2', 'delivered')] }, again)
    },
  ],
  [
    'a publication that names a deduplication id',
    'repeated',
    (books) =>
      arrived({ ...books, stored: [...books.stored, stored('only2', 'delivered')] }, arrival('only2', 'ok/once')),
  ],
  ['a replaced message of a burst', 'wrongBursts', (books) => arrived(books, arrival('older', 'ok/burst'))],
  ['a cancelled message', 'afterCancel', (books) => arrived(books, arrival('gone', 'silent/1', { isSuccess: false }))],
  [
    'a fire of a schedule',
    'wrongFires',
    (books) => ({
      ...books,
      stored: [...books.stored, stored('fire2', 'delivered', 'schedule')],
    }),
  ],
]

const breachesOf = ({ ledger, stored }: Books): Breaches => accountOf(ledger, stored).breaches

describe('the account of the crash test', () => {
  it('finds no violation of a correct server, and counts attempts repeated by a crash', () => {
    const { ledger, stored } = correctBooks()
    const { breaches, summary } = accountOf(ledger, stored)
    expect(breaches).toEqual(NO_BREACHES)
    expect(summary).toBe('8 acknowledged, 5 delivered, 1 dead, 1 cancelled, 1 pending, 1 attempts arrived twice')
  })

  it.each(PLANTS)('notices the loss of %s', (_what, breach, plant) => {
    expect(breachesOf(plant(correctBooks()))[breach]).not.toEqual([])
  })

  it.each(REPETITIONS)('notices the repetition of %s', (_what, breach, plant) => {
    expect(breachesOf(plant(correctBooks()))[breach]).not.toEqual([])
  })

  it('notices a store that has lost a commit', async () => {
    const dataDir = tempDir()
    const onFailure = (error: Error): never => {
      throw error
    }
    const store = await openStore({ location: 'sqlite', dataDir, onFailure })
    const ledger = new QueueLedger()
    const ids = ['msg_a', 'msg_b', 'msg_c']
    await store.run(messagesPublish.publish, { entries: ids.map(entryOf), now: 1 })
    for (const id of ids) ledger.accept(id, 'pending')
    await store.close()
    expect(breachesOf({ ledger, stored: await storedMessages({ dataDir }) })).toEqual(NO_BREACHES)
    await loseMessage({ dataDir }, 'msg_b')
    const { wrongEnds } = breachesOf({ ledger, stored: await storedMessages({ dataDir }) })
    expect(wrongEnds).toEqual([['msg_b', 'pending', 'lost']])
  })
})

/** A message that is due in a thousand years. */
function entryOf(message_id: string) {
  const message = {
    message_id,
    account_id: 'acc',
    kind: 'http',
    url: 'http://nowhere.test/',
    method: 'POST',
    headers: '{}',
    config: '{}',
    max_retries: 3,
    next_at: 2 ** 45,
    created_at: 1,
    labels: '',
    host: 'nowhere.test',
    path: '/',
  }
  return { message, dedup: null }
}
