import { expect, it } from 'vitest'
import { waitFor } from '../../../test/support/wait-for.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { type AnyOperation, type CallCombining, combineCalls, write } from '../operation.js'
import { insertAll, type Transaction } from '../statement.js'
import { CallCombiner, CombinedCalls } from './combined-calls.js'

/** The arguments of a call: a key that it locks, if any, and its size. */
interface Args {
  readonly name: string
  readonly key?: string
  readonly bytes?: number
  readonly rows?: number
}

function* nothing(): Transaction<string[]> {
  yield* insertAll('messages', [])
  return []
}
const joined = write('combinedCallsTest.joined', (_: readonly Args[]) => nothing())
const combining = combineCalls(joined, {
  join: (all: readonly Args[]) => all,
  split: (results) => results,
  bytesOf: ({ bytes = 0 }) => bytes,
  rowsOf: ({ rows = 1 }) => rows,
  keysOf: ({ key }) => (key === undefined ? [] : [key]),
}) as unknown as CallCombining<never, unknown>
const single = write('combinedCallsTest.single', (_: Args) => nothing()) as unknown as AnyOperation

/** Runs calls until `end` is called, and records them as `a+b`. */
function setUp(outcomeOf: (names: readonly string[]) => unknown = (names) => names) {
  const begun: string[] = []
  const ends: (() => void)[] = []
  const calls = new CombinedCalls(single, combining, async (_operation, args) => {
    const names = [args].flat().map((each) => (each as Args).name)
    begun.push(names.join('+'))
    await new Promise<void>((resolve) => ends.push(resolve))
    const outcome = outcomeOf(names)
    if (outcome instanceof Error) throw outcome
    return Array.isArray(args) ? outcome : names[0]
  })
  const call = (name: string, more: Omit<Args, 'name'> = {}) =>
    calls.call({ name, ...more }).catch((error: Error) => error.message)
  const end = () => ends.shift()?.()
  const hasBegun = (...expected: string[]) => waitFor(() => begun.join() === expected.join(), { what: expected.join() })
  return { call, end, hasBegun, begun }
}

it('the combiner combines the calls of a tick, and all that come while two are running', async () => {
  const { call, end, hasBegun } = setUp()
  const first = ['a', 'b'].map((name) => call(name))
  await hasBegun('a+b')
  const second = call('c')
  await hasBegun('a+b', 'c')
  const later = [call('d')]
  await new Promise(setImmediate)
  later.push(call('e'))
  await new Promise(setImmediate)
  end()
  expect(await Promise.all(first)).toEqual(['a', 'b'])
  await hasBegun('a+b', 'c', 'd+e')
  end()
  end()
  expect(await Promise.all([second, ...later])).toEqual(['c', 'd', 'e'])
})

it('the combiner makes refused calls again one by one, and only the refused one fails', async () => {
  const { call, end, hasBegun } = setUp((names) => (names.includes('bad') ? new Error('refused') : names))
  const answers = ['a', 'bad', 'c'].map((name) => call(name))
  await hasBegun('a+bad+c')
  end()
  await hasBegun('a+bad+c', 'a', 'bad', 'c')
  for (let each = 0; each < 3; each++) end()
  expect(await Promise.all(answers)).toEqual(['a', 'refused', 'c'])
})

it('the combiner reports to every caller that the outcome is unknown, and repeats no call', async () => {
  const unknown = new HomeportError('store_outcome_unknown', {})
  const { call, end, hasBegun, begun } = setUp(() => unknown)
  const answers = ['a', 'b'].map((name) => call(name))
  await hasBegun('a+b')
  end()
  expect(await Promise.all(answers)).toEqual([unknown.message, unknown.message])
  expect(begun).toEqual(['a+b'])
})

it('the combiner does not combine calls with a common key, and leaves them in their order', async () => {
  const { call, end, hasBegun } = setUp()
  const answers = [call('a', { key: 'x' }), call('b', { key: 'x' }), call('c', { key: 'y' }), call('d', { key: 'x' })]
  await hasBegun('a+c', 'b')
  end()
  await hasBegun('a+c', 'b', 'd')
  end()
  end()
  expect(await Promise.all(answers)).toEqual(['a', 'b', 'c', 'd'])
})

it('the combiner takes a limited number of bytes at once, and a larger call alone', async () => {
  const { call, end, hasBegun } = setUp()
  const mb = 2 ** 20
  const answers = [call('a', { bytes: 5 * mb }), call('b', { bytes: 3 * mb }), call('c', { bytes: 20 * mb }), call('d')]
  await hasBegun('a+b+d', 'c')
  end()
  end()
  expect(await Promise.all(answers)).toEqual(['a', 'b', 'c', 'd'])
})

it('the combiner takes a limited number of rows at once, and a call with more alone', async () => {
  const { call, end, hasBegun } = setUp()
  const answers = [call('a', { rows: 600 }), call('b', { rows: 400 }), call('c', { rows: 2_000 }), call('d')]
  await hasBegun('a+b', 'c')
  end()
  await hasBegun('a+b', 'c', 'd')
  end()
  end()
  expect(await Promise.all(answers)).toEqual(['a', 'b', 'c', 'd'])
})

it('the combiner combines calls of one group only, where an operation has groups', async () => {
  const begun: string[] = []
  const combiner = new CallCombiner(async (_operation, args) => {
    const names = [args].flat().map((each) => (each as Args).name)
    begun.push(names.join('+'))
    return Array.isArray(args) ? names : names[0]
  })
  const grouped = { ...combining, groupOf: ({ key = '' }: Args) => key } as CallCombining<never, unknown>
  const call = (name: string, key: string) => combiner.call(single, { ...grouped, keysOf: undefined }, { name, key })
  expect(await Promise.all([call('a', 'x'), call('b', 'y'), call('c', 'x')])).toEqual(['a', 'b', 'c'])
  expect(begun).toEqual(['a+c', 'b'])
  expect(await call('d', 'x')).toBe('d')
})
