import type { Static } from 'typebox'
import { changeFlowKey, getFlowKey, listFlowKeys } from '../../contract/queue/flow.js'
import { pauseWord } from '../../contract/words/states.js'
import type { Io } from '../io.js'
import { group, remote } from '../remote/remote.js'
import { given, wholeNumber } from '../remote/values.js'
import { duration, figure } from '../terminal/figures.js'
import { renderTable, stateColumn } from '../terminal/table.js'

type FlowKey = Static<typeof getFlowKey.success.body>

const KEY = ['<key>', 'the flow-control key'] as const

const limitOf = (count: number, most: number, rest = ''): string =>
  most === 0 ? 'no limit' : `${figure(count)} of ${figure(most)}${rest}`

const table = (io: Io, rows: readonly FlowKey[]): string =>
  renderTable(
    io,
    [
      { title: 'KEY', cuts: true, value: (one) => one.flowControlKey },
      stateColumn((one: FlowKey) => pauseWord(one.isPaused)),
      { title: 'WAITING', value: (one) => figure(one.waitListSize), align: 'right' },
      { title: 'IN FLIGHT', value: (one) => limitOf(one.parallelismCount, one.parallelismMax) },
      {
        title: 'RATE',
        value: (one) => limitOf(one.rateCount, one.rateMax, ` in ${duration(one.ratePeriod * 1000)}`),
      },
      { title: 'PINNED', value: pinned },
    ],
    rows,
    'There are no flow-control keys.\n',
  )

const pinned = (one: FlowKey): string =>
  [one.isPinnedParallelism ? 'parallelism' : '', one.isPinnedRate ? 'rate' : ''].filter(Boolean).join(' ')

const listCommand = remote<{ search?: string }>({
  name: 'list',
  summary: 'list flow-control keys with their usage',
  flags: (command) => command.option('--search <text>', 'only keys that contain this text'),
  examples: ['homeport queue flow list --search pay'],
  run: async ({ api, io, show }, { search }) => {
    const keys = await api.call(listFlowKeys, { query: search === undefined ? {} : { search } })
    show(keys, () => table(io, keys))
  },
})

const getCommand = remote({
  name: 'get',
  summary: 'show the limits of a flow-control key and their usage',
  args: [KEY],
  examples: ['homeport queue flow get payments'],
  run: async ({ api, io, show }, _, name) => {
    const key = await api.call(getFlowKey, { params: { key: encodeURIComponent(name) } })
    show(key, () => table(io, [key]))
  },
})

const ACTIONS = {
  pause: 'stop sending messages with this key',
  resume: 'continue sending messages with this key',
  reset: 'end the current period of the rate',
} as const

const actionCommand = (verb: keyof typeof ACTIONS) =>
  remote({
    name: verb,
    summary: ACTIONS[verb],
    args: [KEY],
    examples: [`homeport queue flow ${verb} payments`],
    run: async ({ api, io, show }, _, name) => {
      const key = encodeURIComponent(name)
      await api.call(changeFlowKey, { params: { action: `${key}/${verb}` } })
      const now = await api.call(getFlowKey, { params: { key } })
      show(now, () => table(io, [now]))
    },
  })

const pinCommand = remote<{ parallelism?: number; rate?: number; period?: number }>({
  name: 'pin',
  summary: 'set limits that messages cannot change',
  args: [KEY],
  flags: (command) =>
    command
      .option('--parallelism <number>', 'most requests in flight at the same time', wholeNumber(1))
      .option('--rate <number>', 'most requests that begin in one period', wholeNumber(1))
      .option('--period <seconds>', 'length of the period', wholeNumber(1)),
  examples: ['homeport queue flow pin payments --rate 20 --period 60'],
  run: async ({ api, io, show }, { parallelism, rate, period }, name) => {
    const key = encodeURIComponent(name)
    const limits = Object.entries(given({ parallelism, rate, period })).map(([what, value]) => `${what}=${value}`)
    await api.call(changeFlowKey, { params: { action: `${key}/pin?${limits.join('&')}` } })
    const now = await api.call(getFlowKey, { params: { key } })
    show(now, () => table(io, [now]))
  },
})

const unpinCommand = remote({
  name: 'unpin',
  summary: 'allow messages to set the limits again',
  args: [KEY],
  examples: ['homeport queue flow unpin payments'],
  run: async ({ api, io, show }, _, name) => {
    const key = encodeURIComponent(name)
    await api.call(changeFlowKey, { params: { action: `${key}/unpin?parallelism=true&rate=true` } })
    const now = await api.call(getFlowKey, { params: { key } })
    show(now, () => table(io, [now]))
  },
})

/** `homeport queue flow`. */
export const flowCommand = group('flow', 'flow-control keys: shared limits of messages', [
  listCommand,
  getCommand,
  actionCommand('pause'),
  actionCommand('resume'),
  pinCommand,
  unpinCommand,
  actionCommand('reset'),
])
