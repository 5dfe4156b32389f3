import { Select, SimpleGrid, Textarea, TextInput } from '@mantine/core'
import { useForm } from '@mantine/form'
import { createSchedule, listSchedules } from '../../../../src/contract/queue/schedules.js'
import { useChange } from '../../api/hooks.js'
import { FormDialog } from '../../components/form-dialog.js'
import { useNow } from '../../components/when.js'
import { serverMs } from '../../lib/clock.js'
import { contentTypeOf } from './delivery-form.js'
import { nextFires, zoned } from './fires.js'
import { PUBLISH_RULES } from './publish-form.js'
import { FireTimes } from './schedule-drawer.js'

interface ScheduleValues {
  readonly destination: string
  readonly cron: string
  readonly zone: string
  readonly id: string
  readonly body: string
}

const ZONES = ['UTC', ...Intl.supportedValuesOf('timeZone').filter((zone) => zone !== 'UTC')]

const here = Intl.DateTimeFormat().resolvedOptions().timeZone

/** The local time zone, if it can be selected. */
const ownZone = ZONES.includes(here) ? here : 'UTC'

function cronProblem(cron: string, { zone }: ScheduleValues): string | null {
  const fires = nextFires(zoned(cron, zone), serverMs(), 1)
  return fires.kind === 'problem' ? fires.problem : null
}

/** The headers of a schedule (reference queue 2.9). */
function headersOf({ cron, zone, id, body }: ScheduleValues): Record<string, string> {
  return {
    'upstash-cron': zoned(cron, zone),
    'upstash-method': 'POST',
    ...(id.trim() !== '' && { 'upstash-schedule-id': id.trim() }),
    ...(body !== '' && { 'content-type': contentTypeOf(body) }),
  }
}

/** The dialog that creates a schedule; it shows the next fires while typing. */
export function ScheduleForm({ onClose }: { onClose: () => void }) {
  const now = useNow()
  const form = useForm<ScheduleValues>({
    initialValues: {
      destination: '',
      cron: '0 9 * * 1-5',
      zone: ownZone,
      id: '',
      body: '',
    },
    validateInputOnChange: true,
    validate: {
      destination: PUBLISH_RULES.destination,
      cron: cronProblem,
      id: (id) => (id.trim() === '' || /^[\w.-]+$/.test(id.trim()) ? null : 'Use letters, digits, - _ and . only'),
    },
  })
  const create = useChange(createSchedule, {
    refreshes: [listSchedules],
    errors: 'inline',
    done: 'The schedule was created.',
    onDone: onClose,
  })
  const submit = form.onSubmit((values) =>
    create.mutate({
      params: { destination: values.destination.trim() },
      headers: headersOf(values),
      body: values.body === '' ? undefined : values.body,
    }),
  )
  const { cron, zone } = form.values
  return (
    <FormDialog
      opened
      onClose={onClose}
      title="Create a schedule"
      size="lg"
      task={create}
      action="Create the schedule"
      onSubmit={submit}
    >
      <TextInput
        label="Destination"
        description="A URL, or the name of a URL group"
        placeholder="https://example.com/api/report"
        data-autofocus
        {...form.getInputProps('destination')}
      />
      <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="md">
        <TextInput
          label="Cron expression"
          description="Minute, hour, day, month, weekday"
          styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)' } }}
          {...form.getInputProps('cron')}
        />
        <Select
          label="Time zone"
          description="Of the cron expression"
          data={ZONES}
          searchable
          allowDeselect={false}
          {...form.getInputProps('zone')}
        />
      </SimpleGrid>
      <FireTimes cron={zoned(cron, zone)} nowMs={now} />
      <Textarea label="Body" autosize minRows={3} maxRows={10} {...form.getInputProps('body')} />
      <TextInput
        label="ID"
        description="Optional. Replaces an existing schedule with this ID"
        {...form.getInputProps('id')}
      />
    </FormDialog>
  )
}
