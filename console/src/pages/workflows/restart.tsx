import { Checkbox, MultiSelect, Text, Textarea } from '@mantine/core'
import { useForm } from '@mantine/form'
import { useNavigate } from '@tanstack/react-router'
import { restartRun } from '../../../../src/contract/workflow/restart.js'
import { listRuns } from '../../../../src/contract/workflow/runs.js'
import { api } from '../../api/client.js'
import { useTask } from '../../api/hooks.js'
import { FormDialog } from '../../components/form-dialog.js'
import { useRequestNames } from '../../lib/repeated.js'
import { RESTART_RULES, type Restart, type RestartValues, restartOf, unchanged } from './restart-form.js'

const CODE = { input: { fontFamily: 'var(--mantine-font-family-monospace)' } }

/** The dialog that restarts a run from a step, optionally with another payload and other results. */
export function RestartForm({ runId, plan, onClose }: { runId: string; plan: Restart; onClose: () => void }) {
  const navigate = useNavigate()
  const form = useForm<RestartValues>({
    initialValues: unchanged(plan),
    validateInputOnChange: true,
    validate: RESTART_RULES,
  })
  const names = useRequestNames('wfr_')
  const task = useTask(
    (values: RestartValues) => {
      const body = restartOf(plan, values)
      const headers = { 'Upstash-Workflow-RunId': names.of(body) }
      return api(restartRun, { params: { workflowRunId: runId }, body, headers })
    },
    {
      refreshes: [listRuns],
      errors: 'inline',
      done: 'A new run was started.',
      onDone: ({ workflowRunId }) => {
        onClose()
        void navigate({ to: '/runs/$id', params: { id: workflowRunId } })
      },
    },
  )
  const { results } = form.values
  const choose = (ids: readonly string[]) => {
    const jsonOf = (id: string) => results[id] ?? plan.kept.find(({ stepId }) => String(stepId) === id)?.json ?? 'null'
    form.setFieldValue('results', Object.fromEntries(ids.map((id) => [id, jsonOf(id)])))
  }
  return (
    <FormDialog
      opened
      onClose={onClose}
      title={plan.name ? `Restart from “${plan.name}”` : `Restart from step ${plan.fromStep}`}
      size="lg"
      task={task}
      action="Start the new run"
      onSubmit={form.onSubmit((values) => task.mutate(values))}
    >
      <Text size="sm">
        A new run keeps the results of the earlier steps and executes this step and all later ones. This run does not
        change.
      </Text>
      <Textarea label="Payload" autosize minRows={2} maxRows={10} styles={CODE} {...form.getInputProps('payload')} />
      {plan.kept.length === 0 ? null : (
        <MultiSelect
          label="Results to replace"
          placeholder={Object.keys(results).length === 0 ? 'None' : ''}
          data={plan.kept.map(({ stepId, name }) => ({ value: String(stepId), label: `${stepId}: ${name}` }))}
          value={Object.keys(results)}
          onChange={choose}
          error={form.errors.results}
        />
      )}
      {plan.kept
        .filter(({ stepId }) => results[stepId] !== undefined)
        .map(({ stepId, name }) => (
          <Textarea
            key={stepId}
            label={`Result of ${name}`}
            description="JSON"
            autosize
            minRows={2}
            maxRows={12}
            styles={CODE}
            value={results[stepId] ?? ''}
            onChange={({ currentTarget: { value } }) => form.setFieldValue('results', { ...results, [stepId]: value })}
          />
        ))}
      {plan.hasSiblings ? (
        <Checkbox
          label="Execute the other branches again as well"
          {...form.getInputProps('again', { type: 'checkbox' })}
        />
      ) : null}
    </FormDialog>
  )
}
