import { MultiSelect, NumberInput, Select, Switch, TextInput } from '@mantine/core'
import { useForm } from '@mantine/form'
import {
  type AlertChannel,
  type AlertFormat,
  changeAlertChannel,
  createAlertChannel,
  listAlertChannels,
  MAX_ALERT_TEXT_LENGTH,
} from '../../../../../src/contract/alerts/alerts.js'
import {
  ALERT_KINDS,
  DEFAULT_GROUP_MINUTES,
  DEFAULT_HOURLY_LIMIT,
  GROUP_MINUTES,
} from '../../../../../src/contract/alerts/kinds.js'
import { useChange } from '../../../api/hooks.js'
import { FormDialog } from '../../../components/form-dialog.js'
import { ruleName } from './rule-name.js'

const FORMATS: { value: AlertFormat; label: string }[] = [
  { value: 'json', label: 'JSON with all facts' },
  { value: 'slack', label: 'Slack and compatible' },
]

type ChannelValues = Omit<AlertChannel, 'channel_id' | 'held_back' | 'creation_time'>

const DEFAULTS: ChannelValues = {
  name: '',
  url: '',
  format: 'json',
  kinds: [],
  hourly_limit: DEFAULT_HOURLY_LIMIT,
  group_minutes: DEFAULT_GROUP_MINUTES,
  send_resolved: true,
  enabled: true,
}

const valuesOf = ({
  channel_id: _id,
  held_back: _held,
  creation_time: _made,
  ...values
}: AlertChannel): ChannelValues => values

const nameProblem = (name: string): string | null => {
  if (name.trim() === '') return 'Give the channel a name'
  return name.length > MAX_ALERT_TEXT_LENGTH ? `At most ${MAX_ALERT_TEXT_LENGTH} characters` : null
}

const useChannelForm = (initialValues: ChannelValues) =>
  useForm({
    initialValues,
    validateInputOnChange: true,
    validate: {
      name: nameProblem,
      url: (url) => (/^https?:\/\/./i.test(url) ? null : 'A URL that begins with http:// or https://'),
    },
  })

/** The dialog that adds a channel. */
export function AddChannel({ onClose }: { onClose: () => void }) {
  const form = useChannelForm(DEFAULTS)
  const add = useChange(createAlertChannel, {
    refreshes: [listAlertChannels],
    done: 'The channel was added. Send it a test.',
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
      <ChannelFields form={form} />
    </FormDialog>
  )
}

/** The dialog that changes a channel. */
export function EditChannel({ channel, onClose }: { channel: AlertChannel; onClose: () => void }) {
  const form = useChannelForm(valuesOf(channel))
  const change = useChange(changeAlertChannel, {
    refreshes: [listAlertChannels],
    done: 'The channel was changed.',
    errors: 'inline',
    onDone: onClose,
  })
  return (
    <FormDialog
      opened
      onClose={onClose}
      title={`Edit the channel ${channel.name}`}
      task={change}
      action="Change the channel"
      onSubmit={form.onSubmit((body) => change.mutate({ params: { id: channel.channel_id }, body }))}
    >
      <ChannelFields form={form} />
    </FormDialog>
  )
}

function ChannelFields({ form }: { form: ReturnType<typeof useChannelForm> }) {
  return (
    <>
      <TextInput label="Name" description="Such as: on call" data-autofocus {...form.getInputProps('name')} />
      <TextInput label="URL" description="Where notifications are sent" {...form.getInputProps('url')} />
      <Select label="Format" data={FORMATS} allowDeselect={false} {...form.getInputProps('format')} />
      <MultiSelect
        label="Rules"
        description="Nothing chosen: all rules"
        data={ALERT_KINDS.map((value) => ({ value, label: ruleName(value) }))}
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
      <NumberInput
        label="Group for (minutes)"
        description="Further notifications about one subject within this time are sent as one"
        min={GROUP_MINUTES.least}
        max={GROUP_MINUTES.most}
        allowDecimal={false}
        clampBehavior="strict"
        {...form.getInputProps('group_minutes')}
      />
      <Switch
        label="Also notify when a state ends, such as a full disk"
        {...form.getInputProps('send_resolved', { type: 'checkbox' })}
      />
      <Switch label="Send notifications" {...form.getInputProps('enabled', { type: 'checkbox' })} />
    </>
  )
}
