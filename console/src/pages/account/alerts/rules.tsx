import { Button, NumberInput, Switch } from '@mantine/core'
import { useForm } from '@mantine/form'
import { useState } from 'react'
import { type AlertRule, changeAlertRule, listAlertRules } from '../../../../../src/contract/alerts/alerts.js'
import { useApi, useChange } from '../../../api/hooks.js'
import { useCanWrite } from '../../../api/session.js'
import { type Column, DataTable } from '../../../components/data-table.js'
import { FormDialog } from '../../../components/form-dialog.js'
import { Panel } from '../../../components/page.js'
import { EmptyState, Loaded, LoadingLines } from '../../../components/states.js'
import { ruleName } from './rule-name.js'

/** The rules of alerts and their thresholds. */
export function AlertRules() {
  const [open, setOpen] = useState<AlertRule | undefined>()
  const canWrite = useCanWrite()
  const rules = useApi(listAlertRules, {})
  return (
    <Panel flush title="Rules">
      <Loaded query={rules} loading={<LoadingLines />}>
        {(rows) => (
          <DataTable
            label="Rules"
            columns={columnsFor(canWrite, setOpen)}
            rows={rows}
            rowKey={(rule) => rule.kind}
            empty={<EmptyState title="There are no rules">This server has none.</EmptyState>}
          />
        )}
      </Loaded>
      {open === undefined ? null : <ThresholdForm rule={open} onClose={() => setOpen(undefined)} />}
    </Panel>
  )
}

const columnsFor = (canWrite: boolean, onOpen: (rule: AlertRule) => void): Column<AlertRule>[] => [
  { key: 'on', title: 'On', width: '64px', render: (rule) => <RuleSwitch rule={rule} canWrite={canWrite} /> },
  { key: 'what', title: 'What', render: ({ summary }) => <span title={summary}>{summary}</span> },
  {
    key: 'threshold',
    title: 'Threshold',
    width: '130px',
    from: 'sm',
    render: ({ threshold, unit }) => (threshold === undefined ? '' : `${threshold} ${unit}`),
  },
  {
    key: 'actions',
    title: '',
    width: '92px',
    align: 'right',
    render: (rule) =>
      canWrite && rule.threshold !== undefined ? (
        <Button
          variant="subtle"
          size="compact-sm"
          aria-label={`Change the threshold of ${ruleName(rule.kind)}`}
          onClick={() => onOpen(rule)}
        >
          Change
        </Button>
      ) : null,
  },
]

function RuleSwitch({ rule: { kind, enabled, summary }, canWrite }: { rule: AlertRule; canWrite: boolean }) {
  const change = useChange(changeAlertRule, { refreshes: [listAlertRules] })
  return (
    <Switch
      aria-label={summary}
      checked={enabled}
      disabled={!canWrite || change.isPending}
      onChange={({ currentTarget: { checked } }) => change.mutate({ params: { kind }, body: { enabled: checked } })}
    />
  )
}

function ThresholdForm({ rule, onClose }: { rule: AlertRule; onClose: () => void }) {
  const { kind, threshold = 1, default_threshold: usual, unit = '', meaning = '' } = rule
  const form = useForm({ initialValues: { threshold } })
  const change = useChange(changeAlertRule, {
    refreshes: [listAlertRules],
    done: 'The threshold was changed.',
    errors: 'inline',
    onDone: onClose,
  })
  const submit = form.onSubmit((body) => change.mutate({ params: { kind }, body }))
  return (
    <FormDialog
      opened
      onClose={onClose}
      title={rule.summary}
      task={change}
      action="Change the threshold"
      onSubmit={submit}
    >
      <NumberInput
        label={`Threshold (${unit})`}
        description={`Alert when ${meaning}. Default: ${usual} ${unit}`}
        data-autofocus
        min={1}
        allowDecimal={false}
        {...form.getInputProps('threshold')}
      />
    </FormDialog>
  )
}
