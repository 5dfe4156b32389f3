import IconCalendarTime from 'icon:calendar-time'
import IconPlus from 'icon:plus'
import { Button } from '@mantine/core'
import { useState } from 'react'
import {
  deleteSchedule,
  listSchedules,
  pauseSchedule,
  resumeSchedule,
} from '../../../../src/contract/queue/schedules.js'
import { pauseWord } from '../../../../src/contract/words/states.js'
import { api } from '../../api/client.js'
import { LIVE_MS, useApi, useChange } from '../../api/hooks.js'
import { useCanWrite } from '../../api/session.js'
import { CellButton } from '../../components/cell-buttons.js'
import { confirm } from '../../components/confirm.js'
import { OrCommand } from '../../components/copy.js'
import { type Column, DataTable } from '../../components/data-table.js'
import { Page, Panel } from '../../components/page.js'
import { RowMenu } from '../../components/row-menu.js'
import { StateOf } from '../../components/state-of.js'
import { EmptyState, Loaded, LoadingLines } from '../../components/states.js'
import { Status } from '../../components/status.js'
import { UrlText } from '../../components/url-text.js'
import { When } from '../../components/when.js'
import { withoutScheme } from '../../lib/format.js'
import { unzoned } from './fires.js'
import { type Schedule, ScheduleDrawer } from './schedule-drawer.js'
import { ScheduleForm } from './schedule-form.js'

const CREATE = `homeport queue schedules create https://example.com/report --cron '0 9 * * *'`

/** The list of schedules. */
export function SchedulesPage() {
  const [isCreating, setCreating] = useState(false)
  const [openId, setOpenId] = useState<string | undefined>()
  const canWrite = useCanWrite()
  const schedules = useApi(listSchedules, {}, { everyMs: LIVE_MS })
  const create = canWrite ? (
    <Button leftSection={<IconPlus size={16} />} onClick={() => setCreating(true)}>
      Create a schedule
    </Button>
  ) : undefined
  return (
    <Page
      title="Schedules"
      about="A schedule publishes the same message at the times of a cron expression."
      actions={create}
    >
      <Panel flush title="All schedules">
        <Loaded query={schedules} loading={<LoadingLines />}>
          {(rows) => (
            <DataTable
              label="Schedules"
              columns={columnsFor(canWrite, setOpenId)}
              rows={rows}
              rowKey={({ scheduleId }) => scheduleId}
              onOpen={({ scheduleId }) => setOpenId(scheduleId)}
              empty={
                <EmptyState
                  title="No schedules yet"
                  icon={IconCalendarTime}
                  action={create && <OrCommand command={CREATE}>{create}</OrCommand>}
                >
                  A report every morning, a clean-up every hour: each fire publishes one message, retried like any
                  other.
                </EmptyState>
              }
            />
          )}
        </Loaded>
      </Panel>
      {isCreating ? <ScheduleForm onClose={() => setCreating(false)} /> : null}
      <ScheduleDrawer
        schedule={schedules.data?.find(({ scheduleId }) => scheduleId === openId)}
        onClose={() => setOpenId(undefined)}
      />
    </Page>
  )
}

function columnsFor(canWrite: boolean, onOpen: (id: string) => void): Column<Schedule>[] {
  return [
    {
      key: 'state',
      title: 'State',
      width: '145px',
      render: ({ isPaused, error }) => {
        if (error !== undefined) return <Status tone="bad">Last fire failed</Status>
        return <StateOf word={pauseWord(isPaused)} />
      },
    },
    {
      key: 'destination',
      title: 'Destination',
      render: ({ destination, scheduleId }) => (
        <CellButton onClick={() => onOpen(scheduleId)} title={destination}>
          <UrlText url={destination} />
        </CellButton>
      ),
    },
    {
      key: 'cron',
      title: 'Cron expression',
      width: '170px',
      from: 'sm',
      render: ({ cron }) => <CronTime cron={cron} />,
    },
    {
      key: 'next',
      title: 'Next fire',
      width: '140px',
      from: 'sm',
      render: ({ nextScheduleTime }) => (nextScheduleTime === undefined ? '' : <When atMs={nextScheduleTime} />),
    },
    {
      key: 'last',
      title: 'Last fire',
      width: '140px',
      from: 'md',
      render: ({ lastScheduleTime }) => (lastScheduleTime === undefined ? 'never' : <When atMs={lastScheduleTime} />),
    },
    {
      key: 'actions',
      title: '',
      width: '60px',
      align: 'right',
      render: (schedule) => (canWrite ? <ScheduleActions schedule={schedule} /> : null),
    },
  ]
}

/** The expression, with its time zone if it is not UTC. */
function CronTime({ cron }: { cron: string }) {
  const { zone, expression } = unzoned(cron)
  return (
    <span title={cron}>
      <code>{expression}</code> {zone?.split('/').at(-1)?.replaceAll('_', ' ')}
    </span>
  )
}

function ScheduleActions({ schedule: { scheduleId, destination, isPaused } }: { schedule: Schedule }) {
  const args = { params: { scheduleId } }
  const pause = useChange(pauseSchedule, { refreshes: [listSchedules], done: 'The schedule was paused.' })
  const resume = useChange(resumeSchedule, { refreshes: [listSchedules], done: 'The schedule was resumed.' })
  const askDelete = () =>
    confirm({
      title: 'Delete the schedule',
      text: `The schedule of ${destination} does not fire again. Published messages are still delivered.`,
      action: 'Delete the schedule',
      onConfirm: () => api(deleteSchedule, args),
      refreshes: [listSchedules],
    })
  return (
    <RowMenu
      of={withoutScheme(destination)}
      actions={[
        isPaused
          ? { label: 'Resume the schedule', onClick: () => resume.mutate(args) }
          : { label: 'Pause the schedule', onClick: () => pause.mutate(args) },
        { label: 'Delete the schedule', onClick: askDelete, isDangerous: true },
      ]}
    />
  )
}
