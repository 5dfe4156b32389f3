import type { Static } from 'typebox'
import {
  createSchedule,
  deleteSchedule,
  getSchedule,
  listSchedules,
  pauseSchedule,
  resumeSchedule,
} from '../../contract/queue/schedules.js'
import { pauseWord } from '../../contract/words/states.js'
import type { Io } from '../io.js'
import { group, remote } from '../remote/remote.js'
import { duration, moment, momentFromNow } from '../terminal/figures.js'
import { renderFacts, renderTable, stateColumn, stateFact } from '../terminal/table.js'
import { bodyOf, type MessageOptions, messageFlags, messageHeaders, withFlags } from './settings.js'

type Schedule = Static<typeof getSchedule.success.body>

const ID = ['<id>', 'id of the schedule'] as const

const table = (io: Io, rows: readonly Schedule[]): string =>
  renderTable(
    io,
    [
      { title: 'ID', value: (one) => one.scheduleId },
      { title: 'CRON', value: (one) => one.cron },
      stateColumn((one: Schedule) => pauseWord(one.isPaused)),
      { isExtra: true, title: 'NEXT', value: (one) => moment(one.nextScheduleTime) },
      { isExtra: true, title: 'LAST', value: (one) => moment(one.lastScheduleTime) },
      { title: 'DESTINATION', cuts: true, value: (one) => one.destination },
      { title: '', cuts: true, value: (one) => one.error, tone: () => 'red' },
    ],
    rows,
    'There are no schedules.\n',
  )

const listCommand = remote({
  name: 'list',
  summary: 'list schedules, oldest first',
  examples: ['homeport queue schedules list'],
  run: async ({ api, io, show }) => {
    const schedules = await api.call(listSchedules)
    show(schedules, () => table(io, schedules))
  },
})

const getCommand = remote({
  name: 'get',
  summary: 'show a schedule',
  args: [ID],
  examples: ['homeport queue schedules get weekly'],
  run: async ({ api, io, show }, _, scheduleId) => {
    const schedule = await api.call(getSchedule, { params: { scheduleId } })
    show(schedule, () => facts(io, schedule))
  },
})

const facts = (io: Io, one: Schedule): string =>
  renderFacts(io, [
    ['id', one.scheduleId],
    ['cron', one.cron],
    ['destination', `${one.method} ${one.destination}`],
    ['created', moment(one.createdAt)],
    ['last', moment(one.lastScheduleTime)],
    stateFact(pauseWord(one.isPaused)),
    ['next', momentFromNow(one.nextScheduleTime)],
    ['queue', one.queueName],
    ['delay', one.delay === undefined ? undefined : duration(one.delay * 1_000)],
    ['timeout', one.timeout === undefined ? undefined : duration(one.timeout)],
    ['retries', one.retries],
    ['retry delay', one.retryDelayExpression],
    ['callback', one.callback],
    ['failure callback', one.failureCallback],
    ['labels', one.labels?.join(', ')],
    ['flow control', one.flowControlKey],
    ['priority', one.priority === undefined ? undefined : `${one.priority} s`],
    ['debounce key', one.debounceKey],
    ['singleton key', one.singletonKey],
    ['body', one.body ?? (one.bodyBase64 && `base64:${one.bodyBase64}`)],
    ['error', one.error, 'red'],
  ])

const createCommand = remote<MessageOptions & { cron: string; id?: string; queue?: string }>({
  name: 'create',
  summary: 'create a schedule, or replace the one with this id',
  args: [['<destination>', 'a URL, or the name of a URL group']],
  flags: (command) =>
    messageFlags(
      command
        .requiredOption(
          '--cron <expression>',
          'five fields in UTC; "CRON_TZ=Europe/Berlin " before them sets a time zone',
        )
        .option('--id <id>', 'id of the schedule (default: a new one)')
        .option('--queue <name>', 'the queue of its messages'),
      'notBefore',
    ),
  examples: [`homeport queue schedules create https://example.com/report --cron '0 8 * * 1' --id weekly`],
  run: async (session, options, destination) => {
    const { api, io, show } = session
    const headers = {
      ...messageHeaders(options),
      'upstash-cron': options.cron,
      ...(options.id !== undefined && { 'upstash-schedule-id': options.id }),
      ...(options.queue !== undefined && { 'upstash-queue-name': options.queue }),
    }
    const body = await bodyOf(session, options)
    const request = { params: { destination }, headers, body }
    const { scheduleId = '' } = await withFlags(api.call(createSchedule, request))
    const schedule = await api.call(getSchedule, { params: { scheduleId } })
    show(schedule, () => facts(io, schedule))
  },
})

const pauseOrResume = (name: 'pause' | 'resume') =>
  remote({
    name,
    summary: name === 'pause' ? 'pause a schedule: it does not fire until it is resumed' : 'resume a schedule',
    args: [ID],
    examples: [`homeport queue schedules ${name} weekly`],
    run: async ({ api, io, show }, _, scheduleId) => {
      await api.call(name === 'pause' ? pauseSchedule : resumeSchedule, { params: { scheduleId } })
      const schedule = await api.call(getSchedule, { params: { scheduleId } })
      show(schedule, () => facts(io, schedule))
    },
  })

const deleteCommand = remote({
  name: 'delete',
  summary: 'delete a schedule; messages it has published are still delivered',
  args: [ID],
  isDestructive: true,
  examples: ['homeport queue schedules delete weekly --yes'],
  run: async ({ api, show, confirm }, _, scheduleId) => {
    await confirm(`Delete the schedule "${scheduleId}"?`)
    const answer = await api.call(deleteSchedule, { params: { scheduleId } })
    show(answer, () => `deleted ${scheduleId}\n`)
  },
})

/** `homeport queue schedules`. */
export const schedulesCommand = group('schedules', 'schedules: messages published at the times of a cron expression', [
  createCommand,
  listCommand,
  getCommand,
  pauseOrResume('pause'),
  pauseOrResume('resume'),
  deleteCommand,
])
