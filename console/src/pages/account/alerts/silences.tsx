import IconBellOff from 'icon:bell-off'
import { Button, Select, TextInput } from '@mantine/core'
import { useForm } from '@mantine/form'
import { useDisclosure } from '@mantine/hooks'
import { ALERT_KINDS, isAlertKind } from '../../../../../src/contract/alerts/kinds.js'
import {
  createSilence,
  deleteSilence,
  listSilences,
  type Silence,
} from '../../../../../src/contract/alerts/silences.js'
import { CALM_MS, useApi, useChange } from '../../../api/hooks.js'
import { useCanWrite } from '../../../api/session.js'
import { CellDanger } from '../../../components/cell-buttons.js'
import { type Column, DataTable } from '../../../components/data-table.js'
import { FormDialog } from '../../../components/form-dialog.js'
import { Panel } from '../../../components/page.js'
import { EmptyState, Loaded, LoadingLines } from '../../../components/states.js'
import { When } from '../../../components/when.js'
import { serverMs } from '../../../lib/clock.js'
import { ruleName } from './rule-name.js'

/** Silences: for a while, matching alerts are kept in the history but not sent. */
export function Silences() {
  const [isOpen, { open, close }] = useDisclosure()
  const canWrite = useCanWrite()
  const silences = useApi(listSilences, {}, { everyMs: CALM_MS })
  const silence = canWrite ? (
    <Button variant="default" size="xs" onClick={open}>
      Silence alerts
    </Button>
  ) : undefined
  return (
    <Panel flush title="Silences" actions={silence}>
      <Loaded query={silences} loading={<LoadingLines />}>
        {(rows) => (
          <DataTable
            label="Silences"
            columns={columnsFor(canWrite)}
            rows={rows}
            rowKey={(one) => one.silence_id}
            empty={
              <EmptyState title="Nothing is silenced" icon={IconBellOff}>
                A silence holds back the alerts about a problem that you know of.
              </EmptyState>
            }
          />
        )}
      </Loaded>
      {isOpen ? <SilenceForm onClose={close} /> : null}
    </Panel>
  )
}

const columnsFor = (canWrite: boolean): Column<Silence>[] => [
  { key: 'rule', title: 'Rule', render: ({ kind }) => ruleName(kind) },
  { key: 'subject', title: 'Subject', from: 'sm', render: ({ subject }) => subject ?? 'all' },
  { key: 'until', title: 'Ends', width: '130px', render: ({ until }) => <When atMs={until * 1000} /> },
  { key: 'reason', title: 'Reason', from: 'md', render: ({ reason }) => reason },
  {
    key: 'actions',
    title: '',
    width: '110px',
    align: 'right',
    render: (silence) => (canWrite ? <EndSilence silence={silence} /> : null),
  },
]

function EndSilence({ silence: { silence_id: id, kind } }: { silence: Silence }) {
  const end = useChange(deleteSilence, { refreshes: [listSilences], done: 'Alerts are sent again.' })
  return (
    <CellDanger verb="End" of={`the silence of ${ruleName(kind)}`} onClick={() => end.mutate({ params: { id } })} />
  )
}

const HOUR_S = 3_600
const LENGTHS = [
  { value: String(HOUR_S), label: '1 hour' },
  { value: String(4 * HOUR_S), label: '4 hours' },
  { value: String(24 * HOUR_S), label: '1 day' },
  { value: String(7 * 24 * HOUR_S), label: '7 days' },
]

function SilenceForm({ onClose }: { onClose: () => void }) {
  const form = useForm({ initialValues: { kind: '', subject: '', length: String(HOUR_S), reason: '' } })
  const silence = useChange(createSilence, {
    refreshes: [listSilences],
    errors: 'inline',
    onDone: onClose,
  })
  const submit = form.onSubmit(({ kind, subject, length, reason }) => {
    const until = Math.ceil(serverMs() / 1000) + Number(length)
    const which = { ...(isAlertKind(kind) && { kind }), ...(subject.trim() !== '' && { subject: subject.trim() }) }
    silence.mutate({ body: { ...which, until, ...(reason.trim() !== '' && { reason: reason.trim() }) } })
  })
  return (
    <FormDialog
      opened
      onClose={onClose}
      title="Silence alerts"
      task={silence}
      action="Silence the alerts"
      onSubmit={submit}
    >
      <Select
        label="Rule"
        data={[{ value: '', label: 'All rules' }, ...ALERT_KINDS.map((value) => ({ value, label: ruleName(value) }))]}
        allowDeselect={false}
        {...form.getInputProps('kind')}
      />
      <TextInput
        label="Subject"
        description="As the history shows it. Empty: all subjects"
        {...form.getInputProps('subject')}
      />
      <Select label="How long" data={LENGTHS} allowDeselect={false} {...form.getInputProps('length')} />
      <TextInput label="Reason" description="Shown in the list of silences" {...form.getInputProps('reason')} />
    </FormDialog>
  )
}
