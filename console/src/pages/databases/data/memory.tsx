import IconChartBar from 'icon:chart-bar'
import { Button, Group, Select, Text, TextInput } from '@mantine/core'
import { useMemo, useRef, useState } from 'react'
import type { DataPlane } from '../../../api/data-plane.js'
import { useTask } from '../../../api/hooks.js'
import { type Column, DataTable } from '../../../components/data-table.js'
import { Panel } from '../../../components/page.js'
import { EmptyState, Refusal } from '../../../components/states.js'
import { bytes, counted, percent, whole } from '../../../lib/format.js'
import { useEnd } from './delete-keys.js'
import { useKeysView } from './keys-view.js'
import { MAX_SAMPLED, MemorySample, type PrefixUse, SAMPLE_STEP } from './memory-sample.js'
import { shownName } from './shown-name.js'

const LEVELS = ['1', '2', '3', '4']

/** The memory of the keys by their prefix, estimated from a sample of limited size. */
export function Memory({ plane }: { plane: DataPlane }) {
  const end = useEnd()
  const [view, setView] = useKeysView()
  const [levels, setLevels] = useState('1')
  const [total, setTotal] = useState(0)
  const [sample, setSample] = useState(() => new MemorySample())
  const stop = useRef(new AbortController())
  const [, setStep] = useState(0)
  const grow = useTask(
    async (into: MemorySample) => {
      stop.current = new AbortController()
      setTotal(await plane.keys.count())
      await into.grow(plane.keys, AbortSignal.any([end, stop.current.signal]), () => setStep(into.keys))
    },
    { errors: 'inline' },
  )
  const start = () => {
    const fresh = new MemorySample()
    setSample(fresh)
    grow.mutate(fresh)
  }
  return (
    <Panel
      flush
      title="Memory by prefix"
      about={`Looks at up to ${whole(SAMPLE_STEP)} keys at a time and estimates the rest from them.`}
    >
      <Group gap="xs" px="md" pb="sm" align="flex-end">
        <TextInput
          label="Separator"
          size="xs"
          w={90}
          maxLength={10}
          value={view.separator}
          onChange={(event) => setView({ ...view, separator: event.currentTarget.value })}
        />
        <Select
          label="Levels"
          size="xs"
          w={80}
          data={LEVELS}
          value={levels}
          onChange={(value) => setLevels(value ?? '1')}
        />
        {grow.isPending ? (
          <Button size="xs" variant="default" onClick={() => stop.current.abort()}>
            Stop
          </Button>
        ) : (
          <>
            <Button size="xs" leftSection={<IconChartBar size={14} />} onClick={start}>
              {sample.keys === 0 ? 'Take a sample' : 'Take a new sample'}
            </Button>
            {sample.keys === 0 || sample.isWhole || sample.isFull ? null : (
              <Button size="xs" variant="default" onClick={() => grow.mutate(sample)}>
                Look at {whole(SAMPLE_STEP)} more
              </Button>
            )}
          </>
        )}
      </Group>
      <Refusal error={grow.error} />
      {sample.keys === 0 ? (
        <EmptyState title={grow.isSuccess ? 'The database is empty' : 'No sample yet'} icon={IconChartBar}>
          Take a sample to see which prefixes use the memory.
        </EmptyState>
      ) : (
        <Prefixes sample={sample} keys={sample.keys} total={total} separator={view.separator} levels={Number(levels)} />
      )}
    </Panel>
  )
}

interface PrefixesProps {
  readonly sample: MemorySample
  /** Changes with the sample. */
  readonly keys: number
  /** Keys of the database. */
  readonly total: number
  readonly separator: string
  readonly levels: number
}

function Prefixes({ sample, keys, total, separator, levels }: PrefixesProps) {
  // biome-ignore lint/correctness/useExhaustiveDependencies: the number of keys stands for the content of the sample.
  const uses = useMemo(() => sample.prefixes(separator, levels), [sample, keys, separator, levels])
  // A sample of all keys is not scaled, also if keys were added or deleted meanwhile.
  const scale = sample.isWhole ? 1 : Math.max(1, total / keys)
  const columns = useMemo(() => columnsFor(sample.bytes, scale), [sample.bytes, scale])
  return (
    <>
      <Text size="sm" c="dimmed" px="md" pb="xs" role="status">
        {sampleText(sample, total)}
      </Text>
      <DataTable
        label="Prefixes"
        columns={columns}
        rows={uses}
        rowKey={({ prefix }, index) => prefix ?? `rest-${index}`}
        maxHeight="calc(100dvh - 440px)"
      />
    </>
  )
}

/** A sentence on what the figures are based on: all keys, or a share of them. */
function sampleText(sample: MemorySample, total: number): string {
  const { keys, bytes: size, isWhole, isFull } = sample
  if (isWhole) return `All ${counted(keys, 'key')} were looked at: ${bytes(size)} in memory.`
  const share = percent(Math.min(1, keys / Math.max(1, total)))
  const limit = isFull ? ` A sample has at most ${whole(MAX_SAMPLED)} keys.` : ''
  return `A sample of ${whole(keys)} of ${counted(total, 'key')} (${share}): numbers and sizes are estimates for all keys.${limit}`
}

function columnsFor(sampled: number, scale: number): Column<PrefixUse>[] {
  const about = scale === 1 ? '' : '≈ '
  return [
    {
      key: 'prefix',
      title: 'Prefix',
      render: ({ prefix }) => (prefix === undefined ? 'other prefixes' : <code title={prefix}>{prefix}</code>),
    },
    { key: 'share', title: 'Share', width: '80px', align: 'right', render: (use) => percent(use.bytes / sampled) },
    {
      key: 'memory',
      title: 'Memory',
      width: '110px',
      align: 'right',
      render: (use) => `${about}${bytes(use.bytes * scale)}`,
    },
    {
      key: 'keys',
      title: 'Keys',
      width: '110px',
      align: 'right',
      from: 'sm',
      render: (use) => `${about}${whole(use.keys * scale)}`,
    },
    {
      key: 'mean',
      title: 'Mean',
      width: '90px',
      align: 'right',
      from: 'md',
      render: (use) => bytes(use.bytes / use.keys),
    },
    {
      key: 'largest',
      title: 'Largest key seen',
      width: '26%',
      from: 'md',
      render: ({ largest }) => (
        <span title={shownName(largest.name)}>
          {shownName(largest.name)} ({bytes(largest.bytes)})
        </span>
      ),
    },
  ]
}
