import { Table, Text } from '@mantine/core'
import { duration, percent } from '../../lib/format.js'
import { type Bar, totalsOf } from './timeline.js'
import { PHASE_WORDS } from './words.js'

/** The time of a step, summed by phase. Empty if the log has no phases. */
export function TimeTable({ bar }: { bar: Bar }) {
  const totals = totalsOf(bar)
  const allMs = totals.reduce((sum, { ms }) => sum + ms, 0)
  if (allMs === 0) return null
  return (
    <Table withRowBorders={false} verticalSpacing={2} horizontalSpacing={0} maw="26rem">
      <Table.Caption ta="left" mt={0} style={{ captionSide: 'top' }}>
        <Text size="sm" fw={600} c="var(--mantine-color-text)" component="span">
          Where the time went
        </Text>
      </Table.Caption>
      <Table.Tbody>
        {totals.map(({ phase, ms }) => (
          <Table.Tr key={phase}>
            <Table.Th scope="row" fw={400}>
              {PHASE_WORDS[phase]}
            </Table.Th>
            <Table.Td ta="right">{duration(ms)}</Table.Td>
            <Table.Td ta="right" c="dimmed">
              {percent(ms / allMs)}
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  )
}
