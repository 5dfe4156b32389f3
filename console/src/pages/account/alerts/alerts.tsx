import IconBellRinging from 'icon:bell-ringing'
import IconPlus from 'icon:plus'
import { Button } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import {
  type AlertChannel,
  changeAlertChannel,
  deleteAlertChannel,
  listAlertChannels,
  testAlertChannel,
} from '../../../../../src/contract/alerts/alerts.js'
import { api } from '../../../api/client.js'
import { CALM_MS, useApi, useChange } from '../../../api/hooks.js'
import { useCanWrite } from '../../../api/session.js'
import { confirm } from '../../../components/confirm.js'
import { type Column, DataTable } from '../../../components/data-table.js'
import { Page, Panel } from '../../../components/page.js'
import { RowMenu } from '../../../components/row-menu.js'
import { EmptyState, Loaded, LoadingLines } from '../../../components/states.js'
import { Status } from '../../../components/status.js'
import { withoutScheme } from '../../../lib/format.js'
import { AddChannel, EditChannel } from './channel-form.js'
import { AlertHistory } from './history.js'
import { ruleName } from './rule-name.js'
import { AlertRules } from './rules.js'
import { Silences } from './silences.js'

/** The channels, rules, history and silences of alerts. */
export function AlertsPage() {
  const [isOpen, { open, close }] = useDisclosure()
  const [edited, setEdited] = useState<AlertChannel | undefined>()
  const canWrite = useCanWrite()
  const channels = useApi(listAlertChannels, {}, { everyMs: CALM_MS })
  const add = canWrite ? (
    <Button leftSection={<IconPlus size={16} />} onClick={open}>
      Add a channel
    </Button>
  ) : undefined
  return (
    <Page
      title="Alerts"
      about="Homeport sends alerts to your channels as signed messages, and lists them here for 30 days."
      actions={add}
    >
      <Panel flush title="Channels">
        <Loaded query={channels} loading={<LoadingLines />}>
          {(rows) => (
            <DataTable
              label="Channels"
              columns={columnsFor(canWrite, setEdited)}
              rows={rows}
              rowKey={(channel) => channel.channel_id}
              empty={
                <EmptyState title="No channels yet" icon={IconBellRinging} action={add}>
                  A channel is a URL of yours, or of Slack. Without one, alerts are only kept in the history.
                </EmptyState>
              }
            />
          )}
        </Loaded>
      </Panel>
      <AlertHistory />
      <Silences />
      <AlertRules />
      {isOpen ? <AddChannel onClose={close} /> : null}
      {edited ? <EditChannel channel={edited} onClose={() => setEdited(undefined)} /> : null}
    </Page>
  )
}

function columnsFor(canWrite: boolean, onEdit: (channel: AlertChannel) => void): Column<AlertChannel>[] {
  return [
    { key: 'name', title: 'Name', render: ({ name }) => name },
    { key: 'url', title: 'URL', from: 'sm', render: ({ url }) => <span title={url}>{withoutScheme(url)}</span> },
    { key: 'format', title: 'Format', width: '90px', from: 'xs', render: ({ format }) => format },
    {
      key: 'kinds',
      title: 'Rules',
      from: 'md',
      render: ({ kinds }) => (kinds.length === 0 ? 'all' : kinds.map((kind) => ruleName(kind)).join(', ')),
    },
    {
      key: 'on',
      title: 'Notifications',
      width: '140px',
      from: 'xs',
      render: ({ enabled }) => <Status tone={enabled ? 'ok' : 'idle'}>{enabled ? 'On' : 'Off'}</Status>,
    },
    {
      key: 'actions',
      title: '',
      width: '60px',
      align: 'right',
      render: (channel) => (canWrite ? <ChannelActions channel={channel} onEdit={() => onEdit(channel)} /> : null),
    },
  ]
}

function ChannelActions({ channel, onEdit }: { channel: AlertChannel; onEdit: () => void }) {
  const { channel_id: id, name, enabled } = channel
  const navigate = useNavigate()
  const test = useChange(testAlertChannel, {
    done: 'A test was published. Its log says whether it arrives.',
    onDone: ({ message_id }) => void navigate({ to: '/messages/$id', params: { id: message_id } }),
  })
  const turn = useChange(changeAlertChannel, {
    refreshes: [listAlertChannels],
    done: ({ enabled: isOn }) => `Notifications are ${isOn ? 'on' : 'off'}.`,
  })
  const askDelete = () =>
    confirm({
      title: `Delete the channel ${name}`,
      text: 'Nothing more is sent to it. Notifications that were published before are still delivered.',
      action: 'Delete the channel',
      onConfirm: () => api(deleteAlertChannel, { params: { id } }),
      refreshes: [listAlertChannels],
    })
  return (
    <RowMenu
      of={name}
      actions={[
        { label: 'Send a test', onClick: () => test.mutate({ params: { id } }) },
        { label: 'Edit the channel', onClick: onEdit },
        {
          label: enabled ? 'Turn notifications off' : 'Turn notifications on',
          onClick: () => turn.mutate({ params: { id }, body: { enabled: !enabled } }),
        },
        { label: 'Delete the channel', onClick: askDelete, isDangerous: true },
      ]}
    />
  )
}
