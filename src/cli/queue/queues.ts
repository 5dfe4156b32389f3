import type { Static } from 'typebox'
import {
  deleteQueue,
  getQueue,
  listQueues,
  MAX_PARALLEL,
  pauseQueue,
  putQueue,
  resumeQueue,
} from '../../contract/queue/queues.js'
import { pauseWord } from '../../contract/words/states.js'
import type { Io } from '../io.js'
import { group, remote } from '../remote/remote.js'
import { wholeNumber } from '../remote/values.js'
import { counted, figure, moment } from '../terminal/figures.js'
import { renderTable, stateColumn } from '../terminal/table.js'

type Queue = Static<typeof getQueue.success.body>

const NAME = ['<name>', 'name of the queue'] as const

const table = (io: Io, rows: readonly Queue[]): string =>
  renderTable(
    io,
    [
      { title: 'NAME', value: (one) => one.name },
      { title: 'PARALLELISM', value: (one) => one.parallelism, align: 'right' },
      { title: 'PENDING', value: (one) => figure(one.lag), align: 'right' },
      stateColumn((one: Queue) => pauseWord(one.paused)),
      { title: 'CHANGED', value: (one) => moment(one.updatedAt) },
    ],
    rows,
    'There are no queues. `homeport queue enqueue` creates one.\n',
  )

const listCommand = remote({
  name: 'list',
  summary: 'list queues by name',
  examples: ['homeport queue queues list'],
  run: async ({ api, io, show }) => {
    const queues = await api.call(listQueues)
    show(queues, () => table(io, queues))
  },
})

const getCommand = remote({
  name: 'get',
  summary: 'show a queue',
  args: [NAME],
  examples: ['homeport queue queues get mails'],
  run: async ({ api, io, show }, _, name) => {
    const queue = await api.call(getQueue, { params: { name } })
    show(queue, () => table(io, [queue]))
  },
})

const upsertCommand = remote<{ parallelism?: number; paused?: boolean }>({
  name: 'upsert',
  summary: 'create a queue, or change one: settings that are not given stay',
  args: [NAME],
  flags: (command) =>
    command
      .option(
        '--parallelism <number>',
        'most messages that have their turn at the same time; 1 for a new queue',
        wholeNumber(1, MAX_PARALLEL),
      )
      .option('--paused', 'pause the queue'),
  examples: ['homeport queue queues upsert mails --parallelism 5'],
  run: async ({ api, io, show }, options, name) => {
    // The API replaces all settings.
    const before = (await api.call(listQueues)).find((queue) => queue.name === name)
    const { parallelism = before?.parallelism ?? 1, paused = before?.paused ?? false } = options
    await api.call(putQueue, { body: { queueName: name, parallelism, paused } })
    const queue = await api.call(getQueue, { params: { name } })
    show(queue, () => table(io, [queue]))
  },
})

const pauseOrResume = (name: 'pause' | 'resume') =>
  remote({
    name,
    summary: name === 'pause' ? 'pause a queue: no further messages get their turn' : 'resume a queue',
    args: [NAME],
    examples: [`homeport queue queues ${name} mails`],
    run: async ({ api, io, show }, _, queueName) => {
      await api.call(name === 'pause' ? pauseQueue : resumeQueue, { params: { name: queueName } })
      const queue = await api.call(getQueue, { params: { name: queueName } })
      show(queue, () => table(io, [queue]))
    },
  })

const deleteCommand = remote({
  name: 'delete',
  summary: 'delete a queue and cancel its messages',
  args: [NAME],
  isDestructive: true,
  examples: ['homeport queue queues delete mails --yes'],
  run: async ({ api, show, confirm }, _, name) => {
    const { lag } = await api.call(getQueue, { params: { name } })
    await confirm(`Delete the queue "${name}" and cancel the ${counted(lag, 'pending message')} in it?`)
    const answer = await api.call(deleteQueue, { params: { name } })
    show(answer, () => `deleted ${name}, cancelled ${counted(answer.cancelled, 'message')}\n`)
  },
})

/** `homeport queue queues`. */
export const queuesCommand = group('queues', 'list, create, pause and delete queues', [
  listCommand,
  getCommand,
  upsertCommand,
  pauseOrResume('pause'),
  pauseOrResume('resume'),
  deleteCommand,
])
