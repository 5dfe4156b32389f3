import { TextLink } from '../../components/link.js'

/** The id of an event, as the link to the runs that wait for it and to when it came. */
export const EventLink = ({ id }: { id: string }) => (
  <TextLink to="/events" search={{ event: id }} title={id} className="truncate">
    {id}
  </TextLink>
)
