import { MultiSelect, NumberInput, Select, TextInput } from '@mantine/core'
import { useForm } from '@mantine/form'
import {
  type AlertFormat,
  createAlertChannel,
  LONGEST_ALERT_TEXT,
  listAlertChannels,
} from '../../../../../src/contract/alerts/alerts.js'
import { ALERT_KINDS, type AlertKind, DEFAULT_HOURLY_LIMIT } from '../../../../../src/contract/alerts/kinds.js'
import { useChange } from '../../../api/hooks.js'
import { FormDialog } from '../../../components/form-dialog.js'

const FORMATS: { value: AlertFormat; label: string }[] = [
  { value: 'json', label: 'JSON with all facts' },
  { value: 'slack', label: 'Slack and compatible' },
]

const initialValues: { name: string; url: string; format: AlertFormat; kinds: AlertKind[]; hourly_limit: number } = {
  ...{ name: '', url: '', format: 'json', kinds: [], hourly_limit: DEFAULT_HOURLY_LIMIT },
}

/** The dialog that adds a channel. */
export function AddChannel({ onClose }: { onClose: () => void }) {
  const form = useForm({
    initialValues,
    validateInputOnChange: true,
    validate: {
      name: (name) =>
        name.trim() === ''
          ? 'Give the channel a name'
          : name.length > LONGEST_ALERT_TEXT
            ? `At most ${LONGEST_ALERT_TEXT} characters`
            : null,
      url: (url) => (/^https?:\/\/./i.test(url) ? null : 'A URL that begins with http:// or https://'),
    },
  })
  const add = useChange(createAlertChannel, {
    refreshes: [listAlertChannels],
    done: 'The channel is added. Send it a test.',
    errors: 'inline',
    onDone: onClose,
  })
  return (
    <FormDialog
      opened
      onClose={onClose}
      title="Add a channel"
      task={add}
      action="Add the channel"
      onSubmit={form.onSubmit((body) => add.mutate({ body }))}
    >
      <TextInput
        label="Name"
        description="Who is reached, such as: on call"
        data-autofocus
        {...form.getInputProps('name')}
      />
      <TextInput label="URL" description="Where notifications are sent" {...form.getInputProps('url')} />
      <Select label="Format" data={FORMATS} allowDeselect={false} {...form.getInputProps('format')} />
      <MultiSelect
        label="Rules"
        description="Nothing chosen: all of them"
        data={ALERT_KINDS.map((value) => ({ value, label: value.replaceAll('_', ' ') }))}
        {...form.getInputProps('kinds')}
      />
      <NumberInput
        label="Notifications an hour"
        description="More are held back and counted in the next one"
        min={1}
        max={1000}
        allowDecimal={false}
        clampBehavior="strict"
        {...form.getInputProps('hourly_limit')}
      />
    </FormDialog>
  )
}
