"""The personal data hooks of all features, for exports and the deletion of accounts."""

from refract.library import personal_data as library_data
from refract.links import personal_data as link_data
from refract.lists import personal_data as list_data
from refract.reports import personal_data as report_data

PERSONAL_DATA_HOOKS = (
    report_data.PERSONAL_DATA_HOOK,
    link_data.PERSONAL_DATA_HOOK,
    link_data.INVITATION_DATA_HOOK,
    list_data.PERSONAL_DATA_HOOK,
    library_data.PERSONAL_DATA,
)
